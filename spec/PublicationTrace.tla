-------------------------- MODULE PublicationTrace --------------------------
(***************************************************************************)
(* Is what real processes did a behaviour of Publication?                  *)
(*                                                                         *)
(* Trace has, for each writer, the calls that it made at the system-call   *)
(* port, with their results and when each began and ended, in its own      *)
(* order, and what it told its caller.  TLC looks for an order of all of   *)
(* them in which each call is a step of Publication with that very result  *)
(* and comes after all that had ended when it began.  The trace is         *)
(* accepted when Unfinished fails: when every call has found its place.    *)
(*                                                                         *)
(* A trace numbers the publications in its own order.  An operation bears  *)
(* the number of the publication that linked it first, as in Publication.  *)
(***************************************************************************)
EXTENDS Publication

CONSTANT Trace

VARIABLES
  next,    \* per writer: the number of its next call
  number   \* the number that each publication of the trace has in the spec

traceVars == <<vars, next, number>>

\* TLC evaluates a definition once, and a constant that it is given each time.
Calls == Trace

More(w)  == next[w] <= Len(Calls[w])
Call(w)  == Calls[w][next[w]]
Named(w) == {Calls[w][i].pub : i \in {j \in DOMAIN Calls[w] : Calls[w][j].call = "link"}}

Is(pub, p) == IF pub \in {Genesis, Free} THEN p = pub ELSE number[pub] = p

\* A name held that publication, and the file that revision.
Held(c, p) == Is(c.pub, p) /\ (p # Free => c.rev = Rev(p))

\* What the writer linked is what it should have written.
Written(w, c) ==
  LET p == NextId
      new == file'[p]
      named(pub) == IF pub = c.pub THEN p ELSE IF pub = Genesis THEN Genesis ELSE number[pub]
  IN /\ new.rev = c.rev
     /\ new.previous = named(c.previous)
     /\ new.log = [i \in DOMAIN c.ops |-> named(c.ops[i])]

\* Where a writer is that makes a call next: what leads it elsewhere need not be followed.
Where == [
  read |-> {"idle", "again"}, slot |-> {"look", "withdraw"}, look |-> {"check", "look again", "verify"},
  sync |-> {"sync to help", "sync"}, rename |-> {"help", "install"}, link |-> {"link"},
  private |-> {"look for private"}, acknowledged |-> {"idle", "prune"},
  refused |-> BeforeLink \cup {"idle"}, unknown |-> AfterLink \cup {"idle"}] @@
  "sync team" :> {"sync to prune"} @@ "remove slot" :> {"remove slot", "prune"} @@
  "remove private" :> {"drop"}

\* The step that the call c of the writer w was.
Matches(w, c) ==
  LET l == writer[w] IN
  CASE c.call = "read"           -> Read(w) /\ Held(c, record) /\ writer'[w].changes = c.changes
    [] c.call = "slot"           -> (Look(w) \/ Withdraw(w)) /\ l.slot = c.slot /\ Held(c, slot[c.slot])
    [] c.call = "look"           -> (CheckBeforeHelp(w) \/ Adopt(w) \/ Verify(w)) /\ Held(c, record)
    [] c.call = "sync"           -> SyncToHelp(w) \/ Sync(w)
    [] c.call = "sync team"      -> SyncToPrune(w)
    [] c.call = "rename"         -> (Help(w) \/ Install(w)) /\ Is(c.pub, l.pub) /\ (c.gone = (l.pub \notin private))
    [] c.call = "link"           -> /\ Link(w) /\ l.slot = c.slot
                                    /\ c.taken = (slot[c.slot] # Free)
                                    /\ ~c.taken => Written(w, c)
    [] c.call = "private"        -> LookForPrivate(w) /\ (c.gone = (l.pub \notin private))
    [] c.call = "remove slot"    -> \/ RemoveSlot(w) /\ l.slot = c.slot
                                    \/ Prune(w) /\ slot[c.slot] # Free /\ slot'[c.slot] = Free
    [] c.call = "remove private" -> Drop(w)
    [] c.call = "acknowledged"   -> /\ c.pub # Genesis => number[c.pub] \in acked
                                    /\ \/ At(w, "idle") /\ UNCHANGED vars
                                       \/ At(w, "prune") /\ Stop(w)     \* it has pruned enough
    [] c.call = "refused"        -> Refuse(w) \/ (At(w, "idle") /\ UNCHANGED vars)
    [] c.call = "unknown"        -> Stop(w) \/ (At(w, "idle") /\ UNCHANGED vars)
    [] OTHER                     -> FALSE

\* What had ended before a call began came before it.
Due(w) == \A v \in Writers \ {w} : More(v) => Call(v).ended >= Call(w).began

TraceStep(w) ==
  /\ More(w)
  /\ Due(w)
  /\ Matches(w, Call(w))
  /\ next' = [next EXCEPT ![w] = @ + 1]
  /\ More(w)' => writer'[w].at \in Where[Call(w)'.call]
  /\ number' = IF Call(w).call = "link" /\ ~Call(w).taken
               THEN [number EXCEPT ![Call(w).pub] = NextId] ELSE number

TraceInit ==
  /\ Init
  /\ next = [w \in Writers |-> 1]
  /\ number = [p \in UNION {Named(w) : w \in Writers} |-> Genesis]

TraceSpec == TraceInit /\ [][\E w \in Writers : TraceStep(w)]_traceVars

\* In place of Symmetry: TLC would compute the permutations of many writers.
NoSymmetry == {}

Unfinished == \E w \in Writers : More(w)
=============================================================================
