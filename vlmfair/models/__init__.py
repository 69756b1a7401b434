"""Models: what is known about each, how it is loaded, and how a conversation becomes its prompt."""
