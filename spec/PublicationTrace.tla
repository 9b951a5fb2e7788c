-------------------------- MODULE PublicationTrace --------------------------
(***************************************************************************)
(* Is what real processes did a behaviour of Publication?                  *)
(*                                                                         *)
(* Trace has, for each writer, the calls that it made at the system-call   *)
(* port, with their results, in its own order.  TLC looks for an order of  *)
(* all of them in which each call is a step of Publication with that very  *)
(* result.  The trace is accepted when Unfinished fails: when every call   *)
(* has found its place.                                                    *)
(***************************************************************************)
EXTENDS Publication

CONSTANT Trace

VARIABLES
  next,    \* per writer: the number of its next call
  number   \* the number that each publication of the trace has in the spec

traceVars == <<vars, next, number>>

More(w)  == next[w] <= Len(Trace[w])
Call(w)  == Trace[w][next[w]]
Named(w) == {Trace[w][i].pub : i \in {j \in DOMAIN Trace[w] : Trace[w][j].call = "link"}}

Is(pub, p) == IF pub \in {Genesis, Free} THEN p = pub ELSE number[pub] = p

\* The step that the call c of the writer w was.
Matches(w, c) ==
  LET l == writer[w] IN
  CASE c.call = "read"           -> Read(w) /\ Is(c.pub, record)
    [] c.call = "slot"           -> (Look(w) \/ Withdraw(w)) /\ l.slot = c.slot /\ Is(c.pub, slot[c.slot])
    [] c.call = "look"           -> (CheckBeforeHelp(w) \/ Adopt(w) \/ Verify(w)) /\ Is(c.pub, record)
    [] c.call = "sync"           -> SyncToHelp(w) \/ Sync(w)
    [] c.call = "sync team"      -> SyncToPrune(w)
    [] c.call = "rename"         -> (Help(w) \/ Install(w)) /\ Is(c.pub, l.pub) /\ (c.gone = (l.pub \notin private))
    [] c.call = "link"           -> Link(w) /\ l.slot = c.slot /\ (c.taken = (slot[c.slot] # Free))
    [] c.call = "private"        -> LookForPrivate(w) /\ (c.gone = (l.pub \notin private))
    [] c.call = "remove slot"    -> \/ RemoveSlot(w) /\ l.slot = c.slot
                                    \/ Prune(w) /\ slot[c.slot] # Free /\ slot'[c.slot] = Free
    [] c.call = "remove private" -> Drop(w)
    [] OTHER                     -> FALSE

TraceStep(w) ==
  /\ More(w)
  /\ Matches(w, Call(w))
  /\ next' = [next EXCEPT ![w] = @ + 1]
  /\ number' = IF Call(w).call = "link" /\ ~Call(w).taken
               THEN [number EXCEPT ![Call(w).pub] = NextId] ELSE number

\* Before it reads the record for another operation a writer has ended the
\* one before, which makes no call.
Silent(w) ==
  /\ More(w) /\ Call(w).call = "read"
  /\ Refuse(w) \/ Stop(w)
  /\ UNCHANGED <<next, number>>

TraceInit ==
  /\ Init
  /\ next = [w \in Writers |-> 1]
  /\ number = [p \in UNION {Named(w) : w \in Writers} |-> Genesis]

TraceSpec == TraceInit /\ [][\E w \in Writers : TraceStep(w) \/ Silent(w)]_traceVars

Unfinished == \E w \in Writers : More(w)
=============================================================================
