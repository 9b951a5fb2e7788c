---------------------------- MODULE Publication ----------------------------
(***************************************************************************)
(* One record, many writers, each of which may be killed or paused for     *)
(* ever between any two system calls, with power cuts on top.              *)
(*                                                                         *)
(* A publication is one private file.  It is linked to the first free slot *)
(* above the record (which fails when the name exists: the compare and     *)
(* swap) and then renamed onto the record, which consumes the private      *)
(* name: so it is installed once, by its owner or by whoever helps.  No    *)
(* lock appears here: safety never depends on one.                         *)
(*                                                                         *)
(* The numbers in the comments are the steps of docs/protocol.md, "A       *)
(* write".  Every action is one system call, or one and the decision that  *)
(* follows from what it returned.                                          *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
  Writers,      \* the processes that publish by the rules
  OlderPeers,   \* the processes of releases before the rules
  Revisions,    \* the slots of the model are 1 .. Revisions
  Publications, \* how many publications are linked, at most
  Keep,         \* how many slots a pruning keeps
  PowerCuts,    \* how many power cuts there are, at most
  Steady,       \* the writers that never fail and are neither killed nor paused
  Dropped       \* the rules that are not followed: {} but in a control

Rule(name) == name \notin Dropped

Slots   == 1 .. Revisions
Genesis == 0                  \* the publication that created the team
Free    == -1                 \* what a slot without a file holds
Unnamed == -2                 \* an older peer's file names no previous one
NoOp    == 0                  \* operations are numbered from 1
Ids     == 1 .. Publications

VARIABLES
  (* what the names of the team's directory hold *)
  record,       \* state.json: a publication
  slot,         \* revisions/k.json, each: a publication or Free
  private,      \* the publications that still have their private name
  file,         \* what is in the file of each publication
  (* what they may hold after a power cut, for want of an fsync *)
  mayRecord,    \* the publications that state.json may go back to
  maySlot,      \* the same for each slot
  loose,        \* the private names made or removed since the last fsync
  (* the processes *)
  writer,
  (* what was told to whom: history variables, no action reads them *)
  acked,        \* the operations that were acknowledged
  refused,      \* the operations of which it was said that they failed
  undone,       \* the operations that an older peer took back, coming too late
  current,      \* an operation has succeeded since the last power cut
  cuts          \* the power cuts so far

names   == <<record, slot, private, file>>
durable == <<mayRecord, maySlot, loose>>
told    == <<acked, refused, undone, current>>
vars    == <<names, durable, writer, told, cuts>>

-----------------------------------------------------------------------------
(* Files.  A file has a revision, the identity of the publication that it  *)
(* is based on, and a payload: here, all operations in their order.  A     *)
(* private file that is not linked is nobody's business, so a publication  *)
(* gets its number when it is linked.                                      *)

Blank == [rev |-> 0, previous |-> Unnamed, log |-> <<>>, inode |-> 0]
Rev(p) == file[p].rev
Log(p) == file[p].log
Range(s) == {s[i] : i \in DOMAIN s}

Linked  == {p \in Ids : file[p].rev # 0}
Unused  == Ids \ Linked
NextId  == CHOOSE p \in Unused : \A q \in Unused : p <= q

\* A descriptor held open pins its inode: no other file gets that number.
\* Without, a file takes the smallest number that no name refers to.
InodeOf(p) ==
  IF Rule("pinning") THEN p
  ELSE LET named == ({record} \cup private \cup {slot[s] : s \in Slots}) \ {Free}
           used  == {file[q].inode : q \in named}
       IN CHOOSE n \in 0 .. Publications :
            n \notin used /\ \A m \in 0 .. Publications : m \notin used => n <= m

Same(p, q) == file[p].inode = file[q].inode

-----------------------------------------------------------------------------
(* Processes.  `saw` is the record as it was read, `base` what the write   *)
(* builds on, `slot` the slot looked at or taken, `pub` the publication    *)
(* under way (its own, or the one that it helps), `op` the operation, once *)
(* it has a number, `changes` whether it changes anything, `behind`        *)
(* whether something was adopted or skipped on the way.                    *)

Idle == [at |-> "idle", saw |-> Genesis, base |-> Genesis, slot |-> 0,
         pub |-> Genesis, op |-> NoOp, changes |-> TRUE, behind |-> FALSE]

At(w, step)  == writer[w].at = step
Become(w, l) == writer' = [writer EXCEPT ![w] = l]
Goto(w, step) == Become(w, [writer[w] EXCEPT !.at = step])

\* A conflict: the same operation starts again from the record.
Again(w) == IF writer[w].op = NoOp THEN Idle
            ELSE [Idle EXCEPT !.at = "again", !.op = writer[w].op]

-----------------------------------------------------------------------------
(* What the system calls do to the names.                                  *)

\* Names may go back to values of before, as long as a power cut is to come.
Before(values) == IF cuts < PowerCuts THEN values ELSE {}

LinkTo(s, p) == /\ slot' = [slot EXCEPT ![s] = p]
                /\ maySlot' = [maySlot EXCEPT ![s] = Before(@) \cup {p}]
Unlink(s)    == /\ slot' = [slot EXCEPT ![s] = Free]
                /\ maySlot' = [maySlot EXCEPT ![s] = Before(@) \cup {Free}]
Put(p)       == /\ record' = p
                /\ mayRecord' = Before(mayRecord) \cup {p}
Loosen(p)    == loose' = loose \cup Before({p})
Consume(p)   == /\ private' = private \ {p}
                /\ Loosen(p)
SyncRevisions == /\ maySlot' = [s \in Slots |-> {slot[s]}]
                 /\ loose' = {}
SyncTeam     == mayRecord' = {record}

-----------------------------------------------------------------------------
(* What the next writer builds on, if it is left alone: steps 1 and 2.     *)

RECURSIVE Follow(_, _)
Follow(base, s) ==
  IF s \notin Slots \/ slot[s] = Free THEN base
  ELSE IF file[slot[s]].previous \in {base, Unnamed} THEN Follow(slot[s], s + 1)
  ELSE Follow(base, s + 1)

FollowedFrom(p) == Follow(p, Rev(p) + 1)
Followed == FollowedFrom(record)

-----------------------------------------------------------------------------
(* 1. Read the record.  What the operation will do to it is not known yet: *)
(* it may change nothing.                                                  *)

Read(w) ==
  /\ At(w, "idle") \/ At(w, "again")
  /\ Rev(record) + 1 \in Slots
  /\ \E changes \in BOOLEAN :
       /\ At(w, "again") => changes
       /\ Become(w, [Idle EXCEPT !.at = "look", !.saw = record, !.base = record,
                       !.slot = Rev(record) + 1, !.op = writer[w].op,
                       !.changes = changes])
  /\ UNCHANGED <<names, durable, told, cuts>>

(* 2. Look at the next slot. *)

Done(w) == Become(w, Idle) /\ current' = TRUE /\ UNCHANGED <<acked, refused, undone>>

FollowsFrom(p, base) == file[p].previous = base \/ ~Rule("previous")

Look(w) ==
  LET l == writer[w] IN
  /\ At(w, "look")
  /\ IF l.slot \notin Slots
     THEN Become(w, Idle) /\ UNCHANGED told       \* the end of the model
     ELSE LET p == slot[l.slot] IN
       CASE p = Free /\ ~l.changes /\ ~(l.behind /\ Rule("publish after adopting")) ->
              Done(w)                             \* 3. without a write
         [] p = Free /\ (l.changes \/ (l.behind /\ Rule("publish after adopting"))) ->
              Goto(w, "link") /\ UNCHANGED told   \* 3. it is mine; 4. private file
         [] p # Free /\ file[p].previous = Unnamed ->
              /\ Become(w, [l EXCEPT !.base = p, !.slot = @ + 1, !.behind = TRUE])
              /\ UNCHANGED told                   \* adopt an older peer's
         [] p # Free /\ file[p].previous # Unnamed /\ FollowsFrom(p, l.base) ->
              /\ Become(w, IF Rule("helping") THEN [l EXCEPT !.at = "check", !.pub = p] ELSE Again(w))
              /\ UNCHANGED told
         [] OTHER ->                              \* another branch: skip it
              /\ Become(w, [l EXCEPT !.slot = @ + 1, !.behind = TRUE])
              /\ UNCHANGED told
  /\ UNCHANGED <<names, durable, cuts>>

(* 2, help: check that the record is still the one that was read, ...      *)

CheckBeforeHelp(w) ==
  /\ At(w, "check")
  /\ Become(w, IF Same(record, writer[w].saw)
               THEN [writer[w] EXCEPT !.at = IF Rule("fsync before helping")
                                             THEN "sync to help" ELSE "help"]
               ELSE Again(w))
  /\ UNCHANGED <<names, durable, told, cuts>>

(* ... fsync revisions/, ...                                               *)

SyncToHelp(w) ==
  /\ At(w, "sync to help")
  /\ SyncRevisions
  /\ Goto(w, "help")
  /\ UNCHANGED <<names, mayRecord, told, cuts>>

(* ... and rename the owner's private file onto the record, ...            *)

Help(w) ==
  LET p == writer[w].pub IN
  /\ At(w, "help")
  /\ IF p \in private \/ ~Rule("consuming rename")
     THEN /\ Put(p)
          /\ IF Rule("consuming rename") THEN Consume(p) ELSE UNCHANGED <<private, loose>>
          /\ Become(w, Again(w))
     ELSE /\ Goto(w, "look again")
          /\ UNCHANGED <<record, private, mayRecord, loose>>
  /\ UNCHANGED <<slot, file, maySlot, told, cuts>>

(* ... unless that is gone: then the record has moved, or the file was     *)
(* lost, and the slot's content is adopted.                                *)

Adopt(w) ==
  LET l == writer[w] IN
  /\ At(w, "look again")
  /\ Become(w, IF Same(record, l.saw)
               THEN [l EXCEPT !.at = "look", !.pub = Genesis, !.slot = @ + 1, !.behind = TRUE,
                              !.base = IF Rule("adopting") THEN l.pub ELSE @]
               ELSE Again(w))
  /\ UNCHANGED <<names, durable, told, cuts>>

(* 4 and 5. The private file is written and synced; link it to the slot.   *)

Link(w) ==
  LET l == writer[w]  p == NextId IN
  /\ At(w, "link")
  /\ IF slot[l.slot] # Free /\ Rule("exclusive link")
     THEN Become(w, Again(w)) /\ UNCHANGED <<names, durable>>  \* taken: conflict
     ELSE IF Unused = {}
     THEN Become(w, Idle) /\ UNCHANGED <<names, durable>>      \* the end of the model
     ELSE LET op == IF ~l.changes THEN NoOp ELSE IF l.op = NoOp THEN p ELSE l.op IN
       /\ LinkTo(l.slot, p)
       /\ file' = [file EXCEPT ![p] =
            [rev |-> l.slot, previous |-> l.base, inode |-> InodeOf(p),
             log |-> IF op = NoOp THEN Log(l.base) ELSE Append(Log(l.base), op)]]
       /\ private' = private \cup {p}
       /\ Loosen(p)
       /\ Become(w, [l EXCEPT !.at = IF Rule("fsync before installing") THEN "sync" ELSE "verify",
                              !.pub = p, !.op = op, !.base = Genesis, !.behind = FALSE, !.changes = TRUE])
       /\ UNCHANGED <<record, mayRecord>>
  /\ UNCHANGED <<told, cuts>>

(* 6. fsync revisions/: from here the publication survives a power cut.    *)

Sync(w) ==
  /\ At(w, "sync")
  /\ SyncRevisions
  /\ Goto(w, IF Rule("step 7") THEN "verify" ELSE "install")
  /\ UNCHANGED <<names, mayRecord, told, cuts>>

Gone(p) == IF Rule("consuming rename") THEN p \notin private
           ELSE slot[Rev(p)] = p /\ Rev(record) >= Rev(p)

Acknowledge(w) ==
  LET l == writer[w] IN
  /\ acked' = acked \cup ({l.op} \ {NoOp})
  /\ current' = TRUE
  /\ UNCHANGED <<refused, undone>>
  /\ \/ Become(w, Idle)
     \/ Become(w, [Idle EXCEPT !.at = IF Rule("fsync before pruning") THEN "sync to prune" ELSE "prune",
                               !.slot = l.slot])

(* 7. Look at the record before installing: the one that was read, or one  *)
(* below the slot.                                                         *)

Verify(w) ==
  LET l == writer[w] IN
  /\ At(w, "verify")
  /\ Become(w, [l EXCEPT !.saw = Genesis, !.at =
       CASE slot[l.slot] # l.pub /\ Rev(record) < l.slot -> "drop"  \* an older peer overwrote it
         [] Same(record, l.saw) \/ Rev(record) < l.slot   -> "install"
         [] OTHER                                         -> "look for private"])
  /\ UNCHANGED <<names, durable, told, cuts>>

(* At or above: somebody helped; or the slot had been pruned and reused,   *)
(* and this attempt never happened.                                        *)

Helped(w) == IF Rev(record) >= writer[w].slot THEN Acknowledge(w)
             ELSE Become(w, Idle) /\ UNCHANGED told          \* OUTCOME_UNKNOWN

LookForPrivate(w) ==
  /\ At(w, "look for private")
  /\ IF Gone(writer[w].pub) THEN Helped(w) ELSE Goto(w, "withdraw") /\ UNCHANGED told
  /\ UNCHANGED <<names, durable, cuts>>

Withdraw(w) ==
  LET l == writer[w] IN
  /\ At(w, "withdraw")
  /\ Goto(w, IF slot[l.slot] = l.pub THEN "remove slot" ELSE "drop")
  /\ UNCHANGED <<names, durable, told, cuts>>

RemoveSlot(w) ==
  LET l == writer[w] IN
  /\ At(w, "remove slot")
  /\ IF slot[l.slot] # Free THEN Unlink(l.slot) ELSE UNCHANGED <<slot, maySlot>>
  /\ Goto(w, "drop")
  /\ UNCHANGED <<record, private, file, mayRecord, loose, told, cuts>>

Drop(w) ==
  LET p == writer[w].pub IN
  /\ At(w, "drop")
  /\ IF p \in private
     THEN Consume(p) /\ Become(w, Again(w)) /\ UNCHANGED told
     ELSE Helped(w) /\ UNCHANGED <<private, loose>>
  /\ UNCHANGED <<record, slot, file, mayRecord, maySlot, cuts>>

(* 8. Rename the private file onto the record. *)

Install(w) ==
  LET p == writer[w].pub IN
  /\ At(w, "install")
  /\ IF p \in private
     THEN /\ Put(p)
          /\ IF Rule("consuming rename") THEN Consume(p) ELSE UNCHANGED <<private, loose>>
          /\ Acknowledge(w)
     ELSE Helped(w) /\ UNCHANGED <<record, private, mayRecord, loose>>
  /\ UNCHANGED <<slot, file, maySlot, cuts>>

(* 9. fsync the team directory, then remove old slots, one by one. *)

SyncToPrune(w) ==
  /\ At(w, "sync to prune")
  /\ SyncTeam
  /\ Goto(w, "prune")
  /\ UNCHANGED <<names, maySlot, loose, told, cuts>>

Prune(w) ==
  LET old == {s \in Slots : s + Keep <= writer[w].slot /\ slot[s] # Free} IN
  /\ At(w, "prune")
  /\ IF old = {} THEN Become(w, Idle) /\ UNCHANGED <<slot, maySlot>>
     ELSE \E s \in old : Unlink(s) /\ UNCHANGED writer
  /\ UNCHANGED <<record, private, file, mayRecord, loose, told, cuts>>

-----------------------------------------------------------------------------
(* An older peer relies on its lock, which may be stolen while it sleeps.  *)
(* It reads the record and needs the next slot to be free; it renames its  *)
(* file into the slot (no exclusive link), without `previous`; it syncs    *)
(* revisions/ and links that file to a temporary name, and renames that    *)
(* onto the record, however late.                                          *)

OlderRead(w) ==
  /\ At(w, "idle")
  /\ Rev(record) + 1 \in Slots
  /\ slot[Rev(record) + 1] = Free
  /\ Become(w, [Idle EXCEPT !.at = "older take", !.saw = record, !.slot = Rev(record) + 1])
  /\ UNCHANGED <<names, durable, told, cuts>>

InTime(w) == record = writer[w].saw /\ slot[writer[w].slot] = Free

OlderTake(w) ==
  LET l == writer[w]  p == NextId IN
  /\ At(w, "older take")
  /\ IF Unused = {} \/ (Rule("older peers keep their lock") /\ ~InTime(w))
     THEN Become(w, Idle) /\ UNCHANGED <<names, durable>>
     ELSE /\ LinkTo(l.slot, p)
          /\ file' = [file EXCEPT ![p] =
               [rev |-> l.slot, previous |-> Unnamed, inode |-> InodeOf(p),
                log |-> Append(Log(l.saw), p)]]
          /\ Become(w, [Idle EXCEPT !.at = "older link", !.slot = l.slot, !.pub = p])
          /\ UNCHANGED <<record, private, mayRecord, loose>>
  /\ UNCHANGED <<told, cuts>>

OlderLink(w) ==
  LET l == writer[w] IN
  /\ At(w, "older link")
  /\ IF slot[l.slot] = l.pub THEN Goto(w, "older install") ELSE Become(w, Idle)
  /\ IF Rule("older peers sync") THEN SyncRevisions ELSE UNCHANGED <<maySlot, loose>>
  /\ UNCHANGED <<names, mayRecord, told, cuts>>

\* A peer that comes so late that the history may be pruned above its slot
\* undoes what came after: no promise holds for that, but it does for all
\* that is published later.
TooLate(p) == \E q \in Linked : Rev(q) > Rev(p) + Keep

OlderInstall(w) ==
  LET p == writer[w].pub IN
  /\ At(w, "older install")
  /\ Put(p)
  /\ undone' = IF TooLate(p) THEN undone \cup (UNION {Range(Log(q)) : q \in Linked} \ Range(Log(p)))
               ELSE undone
  /\ current' = FALSE
  /\ Become(w, Idle)
  /\ UNCHANGED <<slot, private, file, maySlot, loose, acked, refused, cuts>>

OlderStep(w) == OlderRead(w) \/ OlderTake(w) \/ OlderLink(w) \/ OlderInstall(w)

OlderStop(w) ==
  /\ w \in OlderPeers /\ ~At(w, "idle")
  /\ Become(w, Idle)
  /\ UNCHANGED <<names, durable, told, cuts>>

-----------------------------------------------------------------------------
(* What goes wrong.                                                        *)

BeforeLink == {"again", "look", "check", "sync to help", "help", "look again", "link"}
AfterLink  == {"sync", "verify", "look for private", "withdraw", "remove slot", "drop",
               "install", "sync to prune", "prune"}

\* An error before the link: a clean refusal, or the writer is killed.
Refuse(w) ==
  /\ writer[w].at \in BeforeLink
  /\ refused' = refused \cup ({writer[w].op} \ {NoOp})
  /\ Become(w, Idle)
  /\ UNCHANGED <<names, durable, acked, undone, current, cuts>>

\* An error after the link, or the writer is killed: everything stays.
Stop(w) ==
  /\ writer[w].at \in AfterLink
  /\ Become(w, Idle)
  /\ UNCHANGED <<names, durable, told, cuts>>

\* Only where the rule is dropped: an error after the link takes the private
\* file back and reports a refusal.
TakeBack(w) ==
  /\ ~Rule("nothing is withdrawn")
  /\ writer[w].at \in {"sync", "install"}
  /\ Consume(writer[w].pub)
  /\ refused' = refused \cup ({writer[w].op} \ {NoOp})
  /\ Become(w, Idle)
  /\ UNCHANGED <<record, slot, file, mayRecord, maySlot, acked, undone, current, cuts>>

\* A left-over private file: its owner is dead, its slot not above the record.
SweepLeftOver(p) ==
  /\ p \in private
  /\ Rev(p) <= Rev(record)
  /\ \A w \in Writers : writer[w].at \in AfterLink => writer[w].pub # p
  /\ Consume(p)
  /\ UNCHANGED <<record, slot, file, mayRecord, maySlot, writer, told, cuts>>

\* Every choice of one value for each slot up to n.
RECURSIVE KeptSlots(_)
KeptSlots(n) == IF n = 0 THEN {<<>>}
                ELSE {Append(kept, p) : kept \in KeptSlots(n - 1), p \in maySlot[n]}

\* A power cut ends every process, and every name keeps any of the values
\* that it had since its directory was last synced.
PowerCut ==
  /\ cuts < PowerCuts
  /\ cuts' = cuts + 1
  /\ \E r \in mayRecord : record' = r /\ mayRecord' = {r}
  /\ \E kept \in KeptSlots(Revisions) :
       /\ slot' = kept
       /\ maySlot' = [s \in Slots |-> {kept[s]}]
  /\ \E there \in SUBSET loose : private' = (private \ loose) \cup there
  /\ loose' = {}
  /\ writer' = [w \in DOMAIN writer |-> Idle]
  /\ current' = FALSE
  /\ UNCHANGED <<file, acked, refused, undone>>

-----------------------------------------------------------------------------
Init ==
  /\ record = Genesis
  /\ slot = [s \in Slots |-> Free]
  /\ private = {}
  /\ file = [p \in Ids \cup {Genesis} |-> Blank]
  /\ mayRecord = {Genesis}
  /\ maySlot = [s \in Slots |-> {Free}]
  /\ loose = {}
  /\ writer = [w \in Writers \cup OlderPeers |-> Idle]
  /\ acked = {} /\ refused = {} /\ undone = {} /\ current = TRUE
  /\ cuts = 0

Step(w) ==
  \/ Read(w) \/ Look(w) \/ CheckBeforeHelp(w) \/ SyncToHelp(w) \/ Help(w) \/ Adopt(w)
  \/ Link(w) \/ Sync(w) \/ Verify(w) \/ LookForPrivate(w) \/ Withdraw(w) \/ RemoveSlot(w)
  \/ Drop(w) \/ Install(w)
  \/ SyncToPrune(w) \/ Prune(w)

Next ==
  \/ \E w \in Writers : Step(w)
  \/ \E w \in Writers \ Steady : Refuse(w) \/ Stop(w) \/ TakeBack(w)
  \/ \E w \in OlderPeers : OlderStep(w) \/ OlderStop(w)
  \/ \E p \in Ids : SweepLeftOver(p)
  \/ PowerCut

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
Effective == Range(Log(Followed)) \ undone

AcknowledgedKept     == acked \ undone \subseteq Effective
RefusedWithoutEffect == refused \cap Effective = {}
OnceOnly == LET log == Log(Followed) IN
            \A i, j \in DOMAIN log : i # j => log[i] # log[j] \/ log[i] \in undone
ReadersCaughtUp      == current => acked \subseteq Range(Log(record))

IsPrefix(s, t) == Len(s) <= Len(t) /\ s = SubSeq(t, 1, Len(s))

\* What a reader sees never goes back ...
NeverBack == [][cuts' = cuts =>
                 \/ record' = record
                 \/ file'[record'].rev > Rev(record) /\ IsPrefix(Log(record), file'[record'].log)]_vars

\* ... and what was seen survives a power cut.
SeenSurvives == [][cuts' # cuts => IsPrefix(Log(record), Log(Followed)')]_vars

-----------------------------------------------------------------------------
(* All of it at once, for the layers above: a register that is compared    *)
(* and swapped in one step.  Its value is what the next writer builds on;  *)
(* its readers see the record.                                             *)

Register == INSTANCE Register WITH log <- Log(Followed), shown <- Log(record)
Implements == Register!Spec

\* A wrong abstraction: the value is what the readers see.  It must fail.
Misread == INSTANCE Register WITH log <- Log(record), shown <- Log(record)
ImplementsMisread == Misread!Spec

-----------------------------------------------------------------------------
(* Progress: one writer that is neither killed nor paused completes what   *)
(* the others left behind, whatever these do and wherever they stop.       *)

FairSpec == Spec /\ \A w \in Steady : WF_vars(Step(w))

EndOfModel   == Rev(Followed) = Revisions \/ Unused = {}
NeverBlocked == []<>(record = Followed \/ EndOfModel)

-----------------------------------------------------------------------------
(* Goals: what the model must be able to reach.  Each is given to TLC as   *)
(* an invariant that has to fail.                                          *)

NoHelp       == \A w \in Writers : ~(At(w, "verify") /\ record = writer[w].pub)
NoAdoption   == \A w \in Writers : ~(At(w, "sync") /\ file[file[writer[w].pub].previous].rev > Rev(record))
NoWithdrawal == \A w \in Writers : ~At(w, "drop")
NoRetry      == \A p \in Linked : \A i \in DOMAIN Log(p) : i = Len(Log(p)) => Log(p)[i] >= p \/ Rev(p) # Len(Log(p))
NoRefusal    == refused = {}
NoPruning    == \A s \in Slots : ~(slot[s] = Free /\ s < Rev(record))
NoSkip       == \A w \in Writers : ~(At(w, "look") /\ \E s \in Slots :
                  /\ s > Rev(writer[w].base) /\ s < writer[w].slot /\ slot[s] # Free
                  /\ file[slot[s]].previous \notin {writer[w].base, Unnamed})

Symmetry == Permutations(Writers)
=============================================================================
