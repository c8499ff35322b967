"""The commands that belong to no part of their own."""
