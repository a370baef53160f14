"""The query of section 12.1 of the 3DF thesis, as printed: the number of tuples arranged at live operators."""

ARRANGED_TUPLES = """
;; total number of tuples arranged at alive operators

[:find ?name (sum ?size)
 :where
 [?x :differential.event/size ?size]
[?x :timely.event.operates/name ?name]
(not [?x :timely.event.operates/shutdown? true])]
"""
