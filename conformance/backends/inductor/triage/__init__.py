"""Triage of Inductor: the rungs of its ladder, the steps that can be turned off, and what is compared inside a stage."""
