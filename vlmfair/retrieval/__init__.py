"""Fetching raw datasets from the web: what may be downloaded, into a folder, whole and checked."""
