"""The papers: one package each, which plans, judges, measures and shows its own experiments."""
