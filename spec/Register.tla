------------------------------ MODULE Register ------------------------------
(***************************************************************************)
(* What the layers above a record rely on: one value, compared and swapped *)
(* in one step.  The value is the sequence of all operations that took     *)
(* effect; an operation is applied to the whole of it or not at all.       *)
(* Readers may be shown an earlier value, and never see it go back, but    *)
(* for a power cut; a power cut takes back only what nobody was shown and  *)
(* nobody was told of.                                                     *)
(*                                                                         *)
(* Publication implements this (its property Implements), and every        *)
(* action of Team is one Apply.                                            *)
(***************************************************************************)
EXTENDS Naturals, Sequences

VARIABLES
  log,      \* the value: the operations, in their order
  shown,    \* what a reader sees
  acked,    \* the operations that were acknowledged
  refused   \* the operations of which it was said that they failed

vars == <<log, shown, acked, refused>>

In(op, s)      == \E i \in DOMAIN s : s[i] = op
IsPrefix(s, t) == Len(s) <= Len(t) /\ s = SubSeq(t, 1, Len(s))

Init == log = <<>> /\ shown = <<>> /\ acked = {} /\ refused = {}

\* Readers are shown more of the value; and whoever asked for an operation is
\* told that it took effect, not before readers see it.
Show ==
  /\ IsPrefix(shown, shown') /\ IsPrefix(shown', log')
  /\ acked \subseteq acked'
  /\ \A op \in acked' \ acked : In(op, shown')
  /\ UNCHANGED refused

\* The compare and swap: the new value is the current one and the operation.
Apply ==
  /\ Len(log') = Len(log) + 1 /\ IsPrefix(log, log')
  /\ LET op == log'[Len(log')] IN op \notin refused /\ ~In(op, log)
  /\ Show

Refuse ==
  /\ refused \subseteq refused'
  /\ \A op \in refused' : ~In(op, log)
  /\ UNCHANGED <<log, shown, acked>>

PowerCut ==
  /\ IsPrefix(log', log) /\ IsPrefix(shown, log')
  /\ \A op \in acked : In(op, log')
  /\ IsPrefix(shown', log')
  /\ UNCHANGED <<acked, refused>>

Next == Apply \/ (Show /\ UNCHANGED log) \/ Refuse \/ PowerCut

Spec == Init /\ [][Next]_vars
=============================================================================
