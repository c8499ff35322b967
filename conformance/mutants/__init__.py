"""Mutants of the compilers: one place of their installed source is changed at a time, and the library is asked whether it sees that.

Seeded faults (`conformance.seeded`) are chosen and written by us. Mutants are drawn at random from what the compilers' own source says,
so that their score says how much of a compiler the library watches, and what survives says where it does not look.
"""
