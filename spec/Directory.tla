------------------------------ MODULE Directory -----------------------------
(***************************************************************************)
(* The directories of teams: created, renamed, deleted and created again   *)
(* under one name, while writers and heartbeats sleep, processes die and   *)
(* the power fails (docs/protocol.md, "Directories").                      *)
(*                                                                         *)
(* A directory is a thing of its own, whatever name it bears.  Publishing  *)
(* in it is one step here (Publication), and what is published is, to keep *)
(* it small, always the same: somebody joins.                              *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
  Processes,
  Names,        \* of teams: {1, 2}; their order is the lexical one
  Directories,  \* how many directories are made, at most
  Joins,        \* how many publications there are, at most
  Jobs,         \* what processes do: {"create", "join", "rename", "delete", "beat"}
  Thefts,       \* how often a lock is stolen from a sleeping holder, at most
  PowerCuts,
  Dropped       \* the rules that are not followed: {} but in a control

Rule(name) == name \notin Dropped

Dirs   == 1 .. Directories
None   == 0
Nobody == "nobody"
Broken == 0                     \* the title of a directory without a record

VARIABLES
  place,     \* the directory that bears each team's name, or None
  tombs,     \* the directories under the name of a tombstone
  title,     \* the name that the record in a directory bears
  joined,    \* who joined in a directory
  lock,      \* the stable lock of each name: its holder or Nobody
  earlier,   \* the names as they may be after a power cut: each since the last sync
  process,   \* each: at which step, with what at hand
  alive,     \* the joined that neither left nor died
  (* history variables *)
  made,      \* how many directories were made
  meant,     \* the directory that each publication was meant for
  created,   \* the directories whose creation was acknowledged
  acked,     \* the acknowledged publications
  renamed,   \* the acknowledged renames: directory and new name
  removed,   \* the directories of which a deletion got as far as removing
  thefts, cuts

names   == <<place, tombs>>
content == <<title, joined>>
history == <<made, meant, created, acked, renamed, removed>>
vars    == <<names, content, lock, earlier, process, alive, history, thefts, cuts>>

Idle == [at |-> "idle", job |-> "none", from |-> None, to |-> None, dir |-> None, half |-> FALSE]

At(p, step)   == process[p].at = step
Become(p, l)  == process' = [process EXCEPT ![p] = l]
Goto(p, step) == Become(p, [process[p] EXCEPT !.at = step])

Vacant(d) == joined[d] \cap alive = {}

\* The names change; a power cut may bring back any state since the last sync.
Names_(newPlace, newTombs) ==
  /\ place' = newPlace /\ tombs' = newTombs
  /\ earlier' = (IF cuts < PowerCuts THEN earlier ELSE {}) \cup {[place |-> newPlace, tombs |-> newTombs]}
\* The content of a tombstone is removed, then its name.
Removal(d, synced) ==
  LET now == [place |-> place, tombs |-> tombs]  after == [now EXCEPT !.tombs = @ \ {d}] IN
  /\ place' = place /\ tombs' = tombs \ {d}
  /\ earlier' = (IF cuts = PowerCuts THEN {} ELSE IF synced THEN {now} ELSE earlier) \cup {after}
SyncNames == earlier' = {[place |-> place, tombs |-> tombs]}

Unlocked(p) == [n \in Names |-> IF lock[n] = p THEN Nobody ELSE lock[n]]
GiveUp(p)   == Become(p, Idle) /\ lock' = Unlocked(p)

-----------------------------------------------------------------------------
(* Create: built complete under a hidden name, put in place, synced.       *)

Create(p, n) ==
  /\ At(p, "idle") /\ "create" \in Jobs /\ made < Directories
  /\ made' = made + 1
  /\ title' = [title EXCEPT ![made'] = IF Rule("build hidden") THEN n ELSE Broken]
  /\ Become(p, [Idle EXCEPT !.at = "put in place", !.job = "create", !.to = n, !.dir = made'])
  /\ UNCHANGED <<names, joined, lock, earlier, alive, meant, created, acked, renamed, removed, thefts, cuts>>

PutInPlace(p) ==
  LET l == process[p] IN
  /\ At(p, "put in place")
  /\ IF place[l.to] = None
     THEN /\ Names_([place EXCEPT ![l.to] = l.dir], tombs)
          /\ Goto(p, IF Rule("build hidden") THEN "sync creation" ELSE "fill")
     ELSE Become(p, Idle) /\ UNCHANGED <<names, earlier>>       \* TEAM_EXISTS
  /\ UNCHANGED <<content, lock, alive, history, thefts, cuts>>

Fill(p) ==  \* only where the rule is dropped
  /\ At(p, "fill")
  /\ title' = [title EXCEPT ![process[p].dir] = process[p].to]
  /\ Goto(p, "sync creation")
  /\ UNCHANGED <<names, joined, lock, earlier, alive, history, thefts, cuts>>

SyncCreation(p) ==
  /\ At(p, "sync creation")
  /\ IF Rule("sync creation") THEN SyncNames ELSE UNCHANGED earlier
  /\ created' = created \cup {process[p].dir}
  /\ Become(p, Idle)
  /\ UNCHANGED <<names, content, lock, alive, made, meant, acked, renamed, removed, thefts, cuts>>

-----------------------------------------------------------------------------
(* A write: it opens the directory, publishes relative to that descriptor, *)
(* and says that it succeeded only if the name still means that directory. *)

Open(p, n, job) ==
  /\ At(p, "idle") /\ job \in Jobs
  /\ place[n] # None /\ title[place[n]] = n          \* nothing else accepts a half renamed team
  /\ Become(p, [Idle EXCEPT !.at = IF job = "join" THEN "publish" ELSE "beat",
                            !.job = job, !.from = n, !.dir = place[n]])
  /\ UNCHANGED <<names, content, lock, earlier, alive, history, thefts, cuts>>

Publish(p) ==
  LET l == process[p]
      d == IF Rule("descriptor") THEN l.dir ELSE place[l.from]
      j == Cardinality(DOMAIN meant) + 1 IN
  /\ At(p, "publish")
  /\ IF d = None \/ j > Joins THEN Become(p, Idle) /\ UNCHANGED <<joined, alive, meant>>
     ELSE IF title[d] # l.from THEN Become(p, Idle) /\ UNCHANGED <<joined, alive, meant>>
     ELSE /\ joined' = [joined EXCEPT ![d] = @ \cup {j}]
          /\ alive' = alive \cup {j}
          /\ meant' = [k \in 1 .. j |-> IF k = j THEN l.dir ELSE meant[k]]
          /\ Become(p, [l EXCEPT !.at = "confirm", !.to = j])
  /\ UNCHANGED <<names, title, lock, earlier, made, created, acked, renamed, removed, thefts, cuts>>

Confirm(p) ==
  LET l == process[p] IN
  /\ At(p, "confirm")
  /\ acked' = IF place[l.from] = l.dir \/ ~Rule("confirm") THEN acked \cup {l.to} ELSE acked  \* or TEAM_MOVED
  /\ Become(p, Idle)
  /\ UNCHANGED <<names, content, lock, earlier, alive, made, meant, created, renamed, removed, thefts, cuts>>

\* A session leaves or dies; one that was told TEAM_MOVED does so.
Depart(j) ==
  /\ j \in alive
  /\ alive' = alive \ {j}
  /\ UNCHANGED <<names, content, lock, earlier, process, history, thefts, cuts>>

\* A heartbeat writes relative to its descriptor; presence is not modelled.
\* Without the rule it makes the directory of that name, if there is none.
Beat(p) ==
  LET n == process[p].from IN
  /\ At(p, "beat")
  /\ Become(p, Idle)
  /\ IF Rule("heartbeat by descriptor") \/ place[n] # None \/ made = Directories
     THEN UNCHANGED <<names, title, earlier, made>>
     ELSE /\ made' = made + 1
          /\ title' = [title EXCEPT ![made'] = Broken]
          /\ Names_([place EXCEPT ![n] = made'], tombs)
  /\ UNCHANGED <<joined, lock, alive, meant, created, acked, renamed, removed, thefts, cuts>>

-----------------------------------------------------------------------------
(* Stable locks.  A rename takes both in lexical order.  A sleeping holder *)
(* may lose any of them to a thief.                                        *)

Min(a, b) == IF a <= b THEN a ELSE b
Max(a, b) == IF a <= b THEN b ELSE a
First(l)  == IF l.to = None THEN l.from ELSE IF Rule("lexical order") THEN Min(l.from, l.to) ELSE l.from
Second(l) == IF Rule("lexical order") THEN Max(l.from, l.to) ELSE l.to

StartMove(p, from, to) ==
  /\ At(p, "idle")
  /\ IF to = None THEN "delete" \in Jobs ELSE "rename" \in Jobs /\ from # to
  /\ \E n \in {from, to} : n # None /\ place[n] # None
  /\ Become(p, [Idle EXCEPT !.at = "lock first", !.from = from, !.to = to,
                            !.job = IF to = None THEN "delete" ELSE "rename"])
  /\ UNCHANGED <<names, content, lock, earlier, alive, history, thefts, cuts>>

Take(p, n, next) ==
  \/ /\ lock[n] = Nobody
     /\ lock' = [lock EXCEPT ![n] = p] /\ Goto(p, next) /\ UNCHANGED thefts
  \/ /\ lock[n] \notin {Nobody, p} /\ thefts < Thefts
     /\ thefts' = thefts + 1
     /\ lock' = [lock EXCEPT ![n] = p] /\ Goto(p, next)

LockFirst(p) ==
  /\ At(p, "lock first")
  /\ Take(p, First(process[p]), IF process[p].to = None THEN "look" ELSE "lock second")
  /\ UNCHANGED <<names, content, earlier, alive, history, cuts>>

LockSecond(p) ==
  /\ At(p, "lock second")
  /\ Take(p, Second(process[p]), "look")
  /\ UNCHANGED <<names, content, earlier, alive, history, cuts>>

-----------------------------------------------------------------------------
(* Rename and delete.  The first look: nobody alive, the target free; or,  *)
(* for a rename, a record under the new name that bears the old one: the   *)
(* same rename was cut in half, and is completed.                          *)

HalfRenamed(l) == l.to # None /\ place[l.to] # None /\ title[place[l.to]] = l.from

FirstLook(p) ==
  LET l == process[p]  d == place[l.from] IN
  /\ At(p, "look")
  /\ IF HalfRenamed(l)
     THEN /\ Become(p, [l EXCEPT !.dir = place[l.to], !.half = TRUE,
                             !.at = IF Rule("sync before completing") THEN "sync move" ELSE "second look"])
          /\ UNCHANGED lock
     ELSE IF d # None /\ (d # None => title[d] = l.from /\ Vacant(d)) /\ (l.to # None => place[l.to] = None)
     THEN Become(p, [l EXCEPT !.at = "move", !.dir = d]) /\ UNCHANGED lock
     ELSE GiveUp(p)
  /\ UNCHANGED <<names, content, earlier, alive, history, thefts, cuts>>

Move(p) ==
  LET l == process[p]  d == place[l.from] IN
  /\ At(p, "move")
  /\ IF d = None \/ (l.to # None /\ (l.to # None => place[l.to] # None))
     THEN GiveUp(p) /\ UNCHANGED <<names, earlier>>
     ELSE /\ IF l.to = None
             THEN Names_([place EXCEPT ![l.from] = None], tombs \cup {d})
             ELSE Names_([place EXCEPT ![l.from] = None, ![l.to] = d], tombs)
          /\ Become(p, [l EXCEPT !.at = IF d = l.dir \/ ~Rule("check what was moved")
                                        THEN "sync move" ELSE "move back", !.dir = d])
          /\ UNCHANGED lock
  /\ UNCHANGED <<content, alive, history, thefts, cuts>>

SyncMove(p) ==
  /\ At(p, "sync move")
  /\ IF Rule("sync the move") THEN SyncNames ELSE UNCHANGED earlier
  /\ Goto(p, "second look")
  /\ UNCHANGED <<names, content, lock, alive, history, thefts, cuts>>

\* Publications that were linked meanwhile: a member that just joined.  What
\* was cut in half by another is not moved back.
SecondLook(p) ==
  LET l == process[p] IN
  /\ At(p, "second look")
  /\ IF Vacant(l.dir) \/ ~Rule("second look")
     THEN Goto(p, IF l.to = None THEN "remove" ELSE "retitle") /\ UNCHANGED lock
     ELSE IF l.half THEN GiveUp(p) ELSE Goto(p, "move back") /\ UNCHANGED lock
  /\ UNCHANGED <<names, content, earlier, alive, history, thefts, cuts>>

MoveBack(p) ==
  LET l == process[p] IN
  /\ At(p, "move back")
  /\ IF place[l.from] # None THEN UNCHANGED <<names, earlier>>
     ELSE IF l.to = None /\ l.dir \in tombs
          THEN Names_([place EXCEPT ![l.from] = l.dir], tombs \ {l.dir})
     ELSE IF l.to # None /\ (l.to # None => place[l.to] = l.dir)
          THEN Names_([place EXCEPT ![l.from] = l.dir, ![l.to] = None], tombs)
     ELSE UNCHANGED <<names, earlier>>
  /\ GiveUp(p)
  /\ UNCHANGED <<content, alive, history, thefts, cuts>>

\* The next revision, with the new name.  Who joined since the second look
\* makes it a conflict.
Retitle(p) ==
  LET l == process[p] IN
  /\ At(p, "retitle")
  /\ IF title[l.dir] # l.from THEN GiveUp(p) /\ UNCHANGED <<title, renamed>>
     ELSE IF ~Vacant(l.dir) /\ Rule("second look")
     THEN Goto(p, "second look") /\ UNCHANGED <<title, lock, renamed>>
     ELSE /\ title' = [title EXCEPT ![l.dir] = l.to]
          /\ renamed' = IF place[l.to] = l.dir THEN renamed \cup {<<l.dir, l.to>>} ELSE renamed
          /\ GiveUp(p)
  /\ UNCHANGED <<names, joined, earlier, alive, made, meant, created, acked, removed, thefts, cuts>>

Remove(p) ==
  LET d == process[p].dir IN
  /\ At(p, "remove")
  /\ IF d \in tombs
     THEN /\ title' = [title EXCEPT ![d] = Broken]
          /\ removed' = removed \cup {d}
          /\ Removal(d, FALSE)
     ELSE UNCHANGED <<names, earlier, title, removed>>
  /\ GiveUp(p)
  /\ UNCHANGED <<joined, alive, made, meant, created, acked, renamed, thefts, cuts>>

\* A tombstone whose owner is dead is a left-over.  Its sweep syncs the names
\* before it removes anything.  It does not look who is in it: that nobody
\* alive is, is assumed (like a lock of an older peer in Publication).  Only a
\* deletion breaks that which slept past its lock while somebody joined, and
\* died between its move and its second look.
SweepTomb(d) ==
  /\ d \in tombs
  /\ \A p \in Processes : process[p].dir # d \/ process[p].job # "delete"
  /\ Rule("nobody alive is in a left-over") => Vacant(d)
  /\ title' = [title EXCEPT ![d] = Broken]
  /\ removed' = removed \cup {d}
  /\ Removal(d, Rule("sync before sweeping"))
  /\ UNCHANGED <<joined, lock, process, alive, made, meant, created, acked, renamed, thefts, cuts>>

-----------------------------------------------------------------------------
(* What goes wrong.  A dead holder of a lock is noticed at once.           *)

Die(p) ==
  /\ ~At(p, "idle")
  /\ GiveUp(p)
  /\ UNCHANGED <<names, content, earlier, alive, history, thefts, cuts>>

PowerCut ==
  /\ cuts < PowerCuts /\ cuts' = cuts + 1
  /\ \E kept \in earlier :
       place' = kept.place /\ tombs' = kept.tombs /\ earlier' = {kept}
  /\ process' = [p \in Processes |-> Idle]
  /\ lock' = [n \in Names |-> Nobody]
  /\ alive' = {}
  /\ UNCHANGED <<content, history, thefts>>

-----------------------------------------------------------------------------
Init ==
  /\ place = [n \in Names |-> None] /\ tombs = {}
  /\ title = [d \in Dirs |-> Broken] /\ joined = [d \in Dirs |-> {}]
  /\ lock = [n \in Names |-> Nobody]
  /\ earlier = {[place |-> place, tombs |-> tombs]}
  /\ process = [p \in Processes |-> Idle]
  /\ alive = {} /\ made = 0 /\ meant = <<>>
  /\ created = {} /\ acked = {} /\ renamed = {} /\ removed = {}
  /\ thefts = 0 /\ cuts = 0

Step(p) ==
  \/ \E n \in Names : Create(p, n) \/ Open(p, n, "join") \/ Open(p, n, "beat")
  \/ PutInPlace(p) \/ Fill(p) \/ SyncCreation(p) \/ Publish(p) \/ Confirm(p) \/ Beat(p)
  \/ \E from \in Names, to \in Names \cup {None} : StartMove(p, from, to)
  \/ LockFirst(p) \/ LockSecond(p) \/ FirstLook(p) \/ Move(p) \/ SyncMove(p) \/ SecondLook(p)
  \/ MoveBack(p) \/ Retitle(p) \/ Remove(p)

Next ==
  \/ \E p \in Processes : Step(p) \/ Die(p)
  \/ \E j \in 1 .. Joins : Depart(j)
  \/ \E d \in Dirs : SweepTomb(d)
  \/ PowerCut

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What holds in every state.                                              *)

\* Nobody ever sees a team without its record.
NoHalfTeam == \A n \in Names : place[n] # None => title[place[n]] # Broken

\* What is written lands in the directory that it was meant for, or nowhere.
WritesWhereMeant == \A d \in Dirs : \A j \in joined[d] : meant[j] = d

\* A directory has one name at most.
OneName == \A n, m \in Names : /\ n # m /\ place[n] # None => place[n] # place[m]
                               /\ place[n] \notin tombs

\* An acknowledged team is there until a deletion removes it ...
CreatedKept == \A d \in created : d \in removed \/ d \in tombs \/ \E n \in Names : place[n] = d

\* ... and no deletion or rename takes it from a living member.
LivingKept ==
  [][\A d \in Dirs : title[d] # Broken /\ title'[d] # title[d] =>
       acked \cap joined[d] \cap alive = {}]_vars

\* A rename that is acknowledged survives a power cut.
RenamedKept ==
  [][\A pair \in renamed' \ renamed : \A kept \in earlier : kept.place[pair[2]] = pair[1]]_vars

\* Whoever waits for a lock waits for nobody who waits for him.
NoDeadlock == \A p, q \in Processes :
  ~(/\ p # q /\ At(p, "lock second") /\ At(q, "lock second")
    /\ lock[Second(process[p])] = q /\ lock[Second(process[q])] = p)

-----------------------------------------------------------------------------
(* Goals: states that must be reachable.                                   *)

NoCompletedRename == \A p \in Processes : ~(At(p, "retitle") /\ process[p].half)
NoMoveBack        == \A p \in Processes : ~At(p, "move back")
NoRecreation      == \A n \in Names : ~(\E d \in removed : place[n] > d)
NoLateWriter      == \A p \in Processes : ~(At(p, "confirm") /\ process[p].dir \in tombs)

Symmetry == Permutations(Processes)
=============================================================================
