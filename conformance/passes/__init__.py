"""The tool of a pass author: a pass put into the real compile, its matches counted, and where one is missing, the stage named.

seam           the private names of torch that are used here, beside those of the Inductor backend
subject        what the author brings: FILE.py:OBJECT, as something that can be put into a compile
form           a graph as plain data: compared between versions, saved, printed
pattern        a pattern of torch's matcher as plain data
near_miss      the longest partial match of a pattern, and the first node that differs
refusal        why torch refuses a match whose structure is right
application    one call of the pass inside a compile: graph before and after, matches
compilation    one compile with the pass: every graph on the way to it
rungs          the pass tried on the graph of every earlier step: the step that took its match away
soundness      what is wrong with a graph that a pass has left
variants       the same micrograph with dynamic sizes, in training, in other dtypes and layouts
neighbours     programs next to one that matched, which must not match or must still be right
examination    all of that for one micrograph
compare        two examinations of the same pass and micrograph: what changed, and at which stage first
selection      which micrographs a pass is examined on
compilers      what the object is says which compiler it is for; autodeploy, torch_tensorrt: those that are not Inductor
report         what an examination says, for people
environments   Python interpreters by torch version
versions       the examination in environments of several torch versions
pin            the pytest file that a pass author keeps
fixtures       the fixture `compiled_with` that such a file uses
"""
