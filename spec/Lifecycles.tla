----------------------------- MODULE Lifecycles -----------------------------
(***************************************************************************)
(* The two lifecycles.  GENERATED from the tables in                       *)
(* pi_team/domain/lifecycles.py, which the code runs; do not edit:         *)
(*     python3 spec/checker/lifecycles.py                                  *)
(***************************************************************************)

MessageStates  == {"pending", "processing", "completed", "interrupted", "seen"}
MessageInitial == "pending"
MessageFinals  == {"completed", "interrupted", "seen"}

MessageTransitions == {
  \* an idle recipient takes it
  [trigger |-> "claim", from |-> {"pending"}, to |-> "processing", kinds |-> {"request", "result"}, claim |-> "set", answers |-> FALSE],
  \* the claimant could not start; nothing was done
  [trigger |-> "release", from |-> {"processing"}, to |-> "pending", kinds |-> {"request", "result"}, claim |-> "removed", answers |-> FALSE],
  \* it was worked on; the outcome is completed or failed
  [trigger |-> "settle", from |-> {"processing"}, to |-> "completed", kinds |-> {"request", "result"}, claim |-> "kept", answers |-> TRUE],
  \* the outcome is interrupted, or the claimant left, died or came back under a new token
  [trigger |-> "interrupt", from |-> {"processing"}, to |-> "interrupted", kinds |-> {"request", "result"}, claim |-> "kept", answers |-> TRUE],
  \* its recipient was removed
  [trigger |-> "refuse", from |-> {"pending", "processing"}, to |-> "interrupted", kinds |-> {"request"}, claim |-> "kept", answers |-> TRUE],
  \* its emitter was removed; nobody is left to read a result
  [trigger |-> "cancel", from |-> {"pending", "processing"}, to |-> "interrupted", kinds |-> {"request"}, claim |-> "removed", answers |-> FALSE],
  \* it was displayed
  [trigger |-> "show", from |-> {"pending"}, to |-> "seen", kinds |-> {"note"}, claim |-> "kept", answers |-> FALSE],
  \* its recipient was removed
  [trigger |-> "discard", from |-> {"pending", "processing"}, to |-> "seen", kinds |-> {"note", "result"}, claim |-> "removed", answers |-> FALSE]
}

-----------------------------------------------------------------------------
MembershipStates  == {"absent", "connected", "offline"}
MembershipInitial == "absent"
MembershipFinals  == {}

MembershipTransitions == {
  \* a session takes the alias under a new token; from connected only where the holder is dead or is this session's process itself
  [trigger |-> "join", from |-> {"absent", "offline", "connected"}, to |-> "connected"],
  \* the session goes; what it claimed is interrupted
  [trigger |-> "leave", from |-> {"connected"}, to |-> "offline"],
  \* the session is dead; what it claimed is interrupted
  [trigger |-> "sweep", from |-> {"connected"}, to |-> "offline"],
  \* the member renames itself
  [trigger |-> "rename", from |-> {"connected"}, to |-> "connected"],
  \* another member or a person renames it
  [trigger |-> "rename", from |-> {"offline"}, to |-> "offline"],
  \* another member or a person removes it, which is offline or dead
  [trigger |-> "remove", from |-> {"offline", "connected"}, to |-> "absent"]
}

=============================================================================
