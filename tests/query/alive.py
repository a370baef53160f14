"""The golden query of section 12.1, as printed: how many tuples are arranged at operators that are alive."""

ALIVE = """
;; total number of tuples arranged at alive operators

[:find ?name (sum ?size)
 :where
 [?x :differential.event/size ?size]
[?x :timely.event.operates/name ?name]
(not [?x :timely.event.operates/shutdown? true])]
"""
