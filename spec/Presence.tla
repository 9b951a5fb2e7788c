------------------------------ MODULE Presence ------------------------------
(***************************************************************************)
(* Who is alive: docs/lifecycles.md, "Judging".  One alias, which sessions *)
(* hold one after another, and one observer that judges the holder by its  *)
(* process and by its heartbeats, sweeps it, and lets others take over.    *)
(* Processes are stopped and continued, die, and sleep with the machine.   *)
(*                                                                         *)
(* Time passes in heartbeat intervals.  Whoever runs beats once in each.   *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
  Sessions,
  Tokens,      \* how often anybody joins, at most
  Expiry,      \* in intervals: an older presence is stale
  Pauses,      \* how often processes or the machine are paused, at most
  ExitSeen,    \* the observer can tell that a process exited (same machine and namespace)
  Dropped      \* the rules that are not followed: {} but in a control

Rule(name) == name \notin Dropped

Nobody == "nobody"
Watch  == 2          \* intervals that an observer watches before it judges by time

VARIABLES
  member,    \* the record: whether somebody is connected, and the token
  claim,     \* a request to the alias: its state, and the token of its claim
  presence,  \* the presence file: its token (0: missing) and its age in intervals
  session,   \* each: its process, the token that it holds (0: none), a join under way
  owner,     \* the session of each token
  observer,  \* whether it runs, for how long it was there, and saw presence missing
  pauses,    \* so far
  steady     \* history variable: intervals since the last stop of each session, if any

vars == <<member, claim, presence, session, owner, observer, pauses, steady>>

Given == Cardinality(DOMAIN owner)

Runs(s)    == session[s].process = "runs"
Current(s) == session[s].token # 0 /\ member.connected /\ member.token = session[s].token

-----------------------------------------------------------------------------
(* The verdict on the pair of alias and token that the record names.       *)

Exited == ExitSeen /\ session[owner[member.token]].process = "dead"

Verdict ==
  IF Exited THEN "dead"
  ELSE IF presence.token = member.token
  THEN IF presence.age < Expiry THEN "alive"
       ELSE IF observer.there = Watch THEN "dead" ELSE "unknown"
  ELSE IF observer.missing = Watch THEN "dead" ELSE "unknown"

Dead == member.connected /\ observer.runs /\ Verdict = "dead"

-----------------------------------------------------------------------------
(* Time.  A session that runs beats; after a pause it looks first whether  *)
(* its token is still current, and detaches if it is not.  A join takes    *)
(* less than an interval, unless the session is stopped.                   *)

Beaters == {s \in Sessions : Runs(s) /\ session[s].token # 0
                             /\ (Current(s) \/ ~Rule("look after a gap"))}

Tick ==
  /\ \A s \in Sessions : Runs(s) => session[s].joins = 0
  /\ presence' \in IF Beaters # {} THEN {[token |-> session[s].token, age |-> 0] : s \in Beaters}
                   ELSE {[presence EXCEPT !.age = IF @ < Expiry THEN @ + 1 ELSE @]}
  /\ observer' = IF ~observer.runs THEN observer
                 ELSE [observer EXCEPT
                   !.there = IF @ < Watch THEN @ + 1 ELSE @,
                   !.missing = IF member.connected /\ presence'.token # member.token
                               THEN IF @ < Watch THEN @ + 1 ELSE @
                               ELSE 0]
  /\ steady' = [s \in Sessions |-> IF Runs(s) /\ session[s].token # 0
                                   THEN IF steady[s] < Watch THEN steady[s] + 1 ELSE steady[s]
                                   ELSE 0]
  /\ UNCHANGED <<member, claim, session, owner, pauses>>

-----------------------------------------------------------------------------
(* A session joins: its presence is written before the publication that    *)
(* makes it needed.                                                        *)

Announce(s) ==
  /\ Runs(s) /\ session[s].token = 0 /\ session[s].joins = 0
  /\ Given < Tokens
  /\ ~member.connected \/ Dead
  /\ owner' = [t \in 1 .. Given + 1 |-> IF t = Given + 1 THEN s ELSE owner[t]]
  /\ session' = [session EXCEPT ![s].joins = Given + 1]
  /\ presence' = [token |-> Given + 1, age |-> 0]
  /\ steady' = [steady EXCEPT ![s] = Watch]
  /\ UNCHANGED <<member, claim, observer, pauses>>

Interrupted == IF claim.state = "processing" THEN [claim EXCEPT !.state = "interrupted"] ELSE claim

\* The verdict on a pair says nothing about the next one.
Forget == IF Rule("judge the pair") THEN [observer EXCEPT !.missing = 0] ELSE observer

Publish(s) ==
  /\ Runs(s) /\ session[s].joins # 0
  /\ IF ~member.connected \/ Dead
     THEN /\ member' = [connected |-> TRUE, token |-> session[s].joins]
          /\ session' = [session EXCEPT ![s].token = session[s].joins, ![s].joins = 0]
          /\ claim' = Interrupted
          /\ observer' = Forget
     ELSE session' = [session EXCEPT ![s].joins = 0] /\ UNCHANGED <<member, claim, observer>>
  /\ UNCHANGED <<presence, owner, pauses, steady>>

Detach(s) ==
  /\ Runs(s) /\ session[s].token # 0 /\ ~Current(s)
  /\ session' = [session EXCEPT ![s].token = 0]
  /\ UNCHANGED <<member, claim, presence, owner, observer, pauses, steady>>

-----------------------------------------------------------------------------
(* Work.                                                                   *)

Claim(s) ==
  /\ Runs(s) /\ Current(s) /\ claim.state = "pending"
  /\ claim' = [state |-> "processing", token |-> session[s].token]
  /\ UNCHANGED <<member, presence, session, owner, observer, pauses, steady>>

Settle(s) ==
  /\ Runs(s) /\ Current(s) /\ claim = [state |-> "processing", token |-> session[s].token]
  /\ claim' = [claim EXCEPT !.state = "completed"]
  /\ UNCHANGED <<member, presence, session, owner, observer, pauses, steady>>

Sweep ==
  /\ Dead /\ Rule("sweep")
  /\ member' = [member EXCEPT !.connected = FALSE]
  /\ claim' = Interrupted
  /\ UNCHANGED <<presence, session, owner, observer, pauses, steady>>

-----------------------------------------------------------------------------
(* What goes wrong.                                                        *)

Stop(s) ==
  /\ Runs(s) /\ pauses < Pauses /\ pauses' = pauses + 1
  /\ session' = [session EXCEPT ![s].process = "stopped"]
  /\ steady' = [steady EXCEPT ![s] = 0]
  /\ UNCHANGED <<member, claim, presence, owner, observer>>

Continue(s) ==
  /\ session[s].process = "stopped"
  /\ session' = [session EXCEPT ![s].process = "runs"]
  /\ UNCHANGED <<member, claim, presence, owner, observer, pauses, steady>>

Die(s) ==
  /\ session[s].process # "dead"
  /\ session' = [session EXCEPT ![s].process = "dead", ![s].joins = 0]
  /\ steady' = [steady EXCEPT ![s] = 0]
  /\ UNCHANGED <<member, claim, presence, owner, observer, pauses>>

\* The lid is closed for long: everybody sleeps, and wakes with old stamps.
Sleep ==
  /\ pauses < Pauses /\ pauses' = pauses + 1
  /\ presence' = [presence EXCEPT !.age = Expiry]
  /\ observer' = IF Rule("been there") THEN [observer EXCEPT !.there = 0, !.missing = 0] ELSE observer
  /\ UNCHANGED <<member, claim, session, owner, steady>>

\* The observer is stopped; continued, or another one (a command that looks
\* once), it has not been there.
StopObserver ==
  /\ observer.runs /\ pauses < Pauses /\ pauses' = pauses + 1
  /\ observer' = [observer EXCEPT !.runs = FALSE]
  /\ UNCHANGED <<member, claim, presence, session, owner, steady>>

ContinueObserver ==
  /\ ~observer.runs
  /\ observer' = IF Rule("been there") THEN [runs |-> TRUE, there |-> 0, missing |-> 0]
                 ELSE [observer EXCEPT !.runs = TRUE]
  /\ UNCHANGED <<member, claim, presence, session, owner, pauses, steady>>

\* The presence file disappears (a power cut, a person).
LosePresence ==
  /\ presence.token # 0 /\ pauses < Pauses /\ pauses' = pauses + 1
  /\ presence' = [token |-> 0, age |-> Expiry]
  /\ UNCHANGED <<member, claim, session, owner, observer, steady>>

-----------------------------------------------------------------------------
Init ==
  /\ member = [connected |-> FALSE, token |-> 0]
  /\ claim = [state |-> "pending", token |-> 0]
  /\ presence = [token |-> 0, age |-> Expiry]
  /\ session = [s \in Sessions |-> [process |-> "runs", token |-> 0, joins |-> 0]]
  /\ owner = [t \in {} |-> Nobody]
  /\ observer = [runs |-> TRUE, there |-> 0, missing |-> 0]
  /\ pauses = 0
  /\ steady = [s \in Sessions |-> 0]

Next ==
  \/ Tick \/ Sweep \/ Sleep \/ StopObserver \/ ContinueObserver \/ LosePresence
  \/ \E s \in Sessions : \/ Announce(s) \/ Publish(s) \/ Detach(s) \/ Claim(s) \/ Settle(s)
                         \/ Stop(s) \/ Continue(s) \/ Die(s)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
\* Who has been running for two intervals, or ever since it joined, is not
\* judged dead.
LivingSpared == Dead => steady[owner[member.token]] < Watch

\* A claim is held by the recorded member.
ClaimOwner == claim.state = "processing" => member.connected /\ member.token = claim.token

Symmetry == Permutations(Sessions)

-----------------------------------------------------------------------------
(* Time passes, and the observer polls.                                    *)

FairSpec ==
  /\ Spec
  /\ WF_vars(Tick) /\ WF_vars(Sweep) /\ WF_vars(ContinueObserver)
  /\ \A s \in Sessions : WF_vars(Publish(s))

\* A claim does not outlast its session, however that ended.
Unstuck == \A s \in Sessions :
  (claim.state = "processing" /\ owner[claim.token] = s /\ session[s].process = "dead")
    ~> claim.state # "processing"

\* Nor one that is stopped for ever.
UnstuckStopped == \A s \in Sessions :
  (claim.state = "processing" /\ owner[claim.token] = s /\ ~Runs(s))
    ~> (claim.state # "processing" \/ Runs(s))

-----------------------------------------------------------------------------
(* Goals.                                                                  *)

NoTakeover      == ~(member.connected /\ member.token > 1)
NoStaleVerdict  == ~(Dead /\ ~Exited /\ presence.token = member.token)
NoAbsentVerdict == ~(Dead /\ ~Exited /\ presence.token # member.token)
NoRevival       == \A s \in Sessions : ~(Runs(s) /\ session[s].token # 0 /\ ~Current(s))
=============================================================================
