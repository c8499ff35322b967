"""A score of the library on bugs that nobody seeded: fixes of PyTorch's own history, put back out of the installed torch.

    history.py      fixes of a checkout's history, by simple rules
    revert.py       a fix taken out of the installed files: an overlay, a folder of changed modules
    site/           what loads an overlay in every interpreter, with nothing changed on disk
    proof.py        the fix's own tests: right without the overlay, wrong with it
    choice.py       the micrographs that reach a bug's lines
    examined.py     what they show, in an interpreter with the overlay
    cells.py        which cells differ
    scoring.py      all of it for one bug
    bug.py          one line of the record
    summary.py      what the record says, in numbers

docs/reverts.md has the long form.
"""
