-------------------------------- MODULE Team --------------------------------
(***************************************************************************)
(* Members, messages and claims: docs/lifecycles.md over a record that is  *)
(* compared and swapped in one step.  Every action below is one            *)
(* publication, one Apply of Register: it reads the whole record and       *)
(* replaces it.  States of messages and memberships change only by the     *)
(* rows of Lifecycles, which is generated from the tables that the code    *)
(* runs.                                                                   *)
(*                                                                         *)
(* Who is judged dead is arbitrary here: any member, at any step, rightly  *)
(* or not.  So whatever holds does not depend on presence.                 *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets, TLC, Lifecycles

CONSTANTS
  Names,     \* aliases
  Sessions,  \* independent processes
  Kinds,     \* of the messages that are sent: {"request", "note"} or less
  Tokens,    \* how often anybody joins, at most
  Records,   \* the history holds that many messages
  Capacity,  \* slots for unsettled deliveries per member
  Nobody,
  Dropped    \* the guards that are not there: {} but in a control

Guard(name) == name \notin Dropped

VARIABLES
  members,   \* per alias: state and token; `address` is a history variable
  messages,  \* the messages in record order
  session,   \* what each session believes to hold: an alias and a token
  tokens,    \* the tokens given so far
  (* history variables: no action depends on them *)
  addresses, \* a new address for each alias that appears; a rename keeps it
  holder,    \* the session that each connected alias belongs to
  intruded   \* somebody changed the record who held no membership

vars == <<members, messages, session, tokens, addresses, holder, intruded>>

Absent  == [state |-> MembershipInitial, token |-> 0, address |-> 0]
NoPlace == [alias |-> Nobody, token |-> 0]

IsMember(x)  == members[x].state # "absent"
Connected(x) == members[x].state = "connected"
Indexes      == DOMAIN messages
Unsettled(m) == m.state \notin MessageFinals
Processing(m) == m.state = "processing"

-----------------------------------------------------------------------------
(* Transitions.                                                            *)

Row(kind, trigger) ==
  CHOOSE row \in MessageTransitions : row.trigger = trigger /\ kind \in row.kinds

Legal(m, trigger) ==
  \E row \in MessageTransitions :
    row.trigger = trigger /\ m.kind \in row.kinds /\ m.state \in row.from

Moved(m, trigger, token) ==
  LET row == Row(m.kind, trigger) IN
  [m EXCEPT !.state = row.to,
            !.claim = CASE row.claim = "set" -> token [] row.claim = "removed" -> 0 [] OTHER -> @,
            !.end   = IF row.to \in MessageFinals THEN trigger ELSE "none"]

Result(request, i) ==
  [kind |-> "result", from |-> request.to, to |-> request.from, state |-> MessageInitial,
   claim |-> 0, parent |-> i, end |-> "none",
   emitter |-> request.recipient, recipient |-> request.emitter]

RECURSIVE Ascending(_)
Ascending(S) == IF S = {} THEN <<>>
                ELSE LET least == CHOOSE i \in S : \A j \in S : i <= j
                     IN <<least>> \o Ascending(S \ {least})

\* The messages S of ms take a trigger; each request that it answers yields a
\* result in the same publication.
Take(ms, S, trigger) ==
  LET after    == [i \in DOMAIN ms |-> IF i \in S THEN Moved(ms[i], trigger, 0) ELSE ms[i]]
      answered == Ascending({i \in S : /\ ms[i].kind = "request"
                                       /\ Row("request", trigger).answers
                                       /\ Guard("a refusal yields a result") \/ trigger # "refuse"})
  IN after \o [n \in DOMAIN answered |-> Result(ms[answered[n]], answered[n])]

\* A member takes a trigger.
Member(x, trigger) ==
  LET row == CHOOSE r \in MembershipTransitions : r.trigger = trigger /\ members[x].state \in r.from
  IN [members[x] EXCEPT !.state = row.to]

-----------------------------------------------------------------------------
(* Ownership: alias and token together, and the member connected.          *)

Owner(s) ==
  LET place == session[s] IN
  /\ place.alias # Nobody
  /\ IsMember(place.alias)
  /\ Guard("token") => members[place.alias].token = place.token
  /\ Guard("offline") => Connected(place.alias)

Alias(s) == session[s].alias
Acts(s)  == intruded' = (intruded \/ holder[Alias(s)] # s)

-----------------------------------------------------------------------------
(* Capacity.  Each unsettled request reserves a slot for its result with   *)
(* its emitter, and a place in the history.                                *)

Delivered(x) == Cardinality({i \in Indexes : Unsettled(messages[i]) /\ messages[i].to = x})
Outstanding(x) == Cardinality({i \in Indexes :
                    messages[i].kind = "request" /\ Unsettled(messages[i]) /\ messages[i].from = x})
AllOutstanding == Cardinality({i \in Indexes : messages[i].kind = "request" /\ Unsettled(messages[i])})

Taken(x) == Delivered(x) + (IF Guard("reserved slot") THEN Outstanding(x) ELSE 0)
Held     == Len(messages) + (IF Guard("reserved record") THEN AllOutstanding ELSE 0)

HasRoom(x, y, kind) ==
  /\ Taken(y) + 1 <= Capacity
  /\ (kind = "request" /\ Guard("reserved slot")) => Taken(x) + 1 <= Capacity
  /\ Held + (IF kind = "request" /\ Guard("reserved record") THEN 2 ELSE 1) <= Records

-----------------------------------------------------------------------------
(* Membership.                                                             *)

ClaimsOf(x) == {i \in Indexes : Processing(messages[i]) /\ messages[i].to = x}

\* An alias that is absent, offline, or connected and judged dead (anybody
\* may be); a session that believes to be a member joins only its own alias.
Join(s, x) ==
  /\ tokens < Tokens
  /\ LET place == session[s] IN
       IF place.alias \in {Nobody, x} THEN TRUE
       ELSE members[place.alias].token # place.token \/ ~Connected(place.alias)
  /\ tokens' = tokens + 1
  /\ addresses' = IF IsMember(x) THEN addresses ELSE addresses + 1
  /\ members' = [members EXCEPT ![x] =
       [Member(x, "join") EXCEPT !.token = tokens', !.address = IF IsMember(x) THEN @ ELSE addresses']]
  /\ session' = [session EXCEPT ![s] = [alias |-> x, token |-> tokens']]
  /\ holder' = [holder EXCEPT ![x] = s]
  /\ messages' = IF Guard("join interrupts") THEN Take(messages, ClaimsOf(x), "interrupt") ELSE messages
  /\ UNCHANGED intruded

Leave(s) ==
  LET x == Alias(s) IN
  /\ Owner(s) /\ Connected(x) /\ Acts(s)
  /\ members' = [members EXCEPT ![x] = Member(x, "leave")]
  /\ session' = [session EXCEPT ![s] = NoPlace]
  /\ holder' = [holder EXCEPT ![x] = Nobody]
  /\ messages' = IF Guard("leave interrupts") THEN Take(messages, ClaimsOf(x), "interrupt") ELSE messages
  /\ UNCHANGED <<tokens, addresses>>

-----------------------------------------------------------------------------
(* Messages.                                                               *)

Send(s, y, kind) ==
  LET x == Alias(s) IN
  /\ Owner(s) /\ Acts(s)
  /\ Guard("not to itself") => y # x
  /\ Guard("known recipient") => IsMember(y)
  /\ HasRoom(x, y, kind)
  /\ messages' = Append(messages,
       [kind |-> kind, from |-> x, to |-> y, state |-> MessageInitial, claim |-> 0, parent |-> 0,
        end |-> "none", emitter |-> members[x].address, recipient |-> members[y].address])
  /\ UNCHANGED <<members, session, tokens, addresses, holder>>

\* All that are pending, or those of them that it has displayed by now.
Notes(s) ==
  LET mine == {i \in Indexes : messages[i].to = Alias(s) /\ Legal(messages[i], "show")} IN
  /\ Owner(s) /\ Acts(s)
  /\ \E shown \in SUBSET mine \ {{}} : messages' = Take(messages, shown, "show")
  /\ UNCHANGED <<members, session, tokens, addresses, holder>>

Claim(s, i) ==
  /\ i \in Indexes /\ Owner(s) /\ Acts(s)
  /\ messages[i].to = Alias(s) /\ Legal(messages[i], "claim")
  /\ Guard("one claim") => ClaimsOf(Alias(s)) = {}
  /\ messages' = [messages EXCEPT ![i] = Moved(@, "claim", session[s].token)]
  /\ UNCHANGED <<members, session, tokens, addresses, holder>>

Claimed(s, i) ==
  /\ messages[i].to = Alias(s)
  /\ IF Guard("token") THEN messages[i].claim = session[s].token ELSE messages[i].claim # 0

Release(s, i) ==
  /\ i \in Indexes /\ Owner(s) /\ Acts(s) /\ Claimed(s, i) /\ Legal(messages[i], "release")
  /\ messages' = [messages EXCEPT ![i] = Moved(@, "release", 0)]
  /\ UNCHANGED <<members, session, tokens, addresses, holder>>

Settle(s, i) ==
  /\ i \in Indexes /\ Owner(s) /\ Acts(s) /\ Claimed(s, i)
  /\ \E trigger \in {"settle", "interrupt"} :
       /\ Legal(messages[i], trigger) \/ (~Guard("final") /\ Len(messages) < Records)
       /\ messages' = Take(messages, {i}, trigger)
  /\ UNCHANGED <<members, session, tokens, addresses, holder>>

-----------------------------------------------------------------------------
(* Sweeps.  D are the members judged dead.                                 *)

Sweepable(D) ==
  {i \in Indexes : LET m == messages[i] IN
     Processing(m) /\ ~(Connected(m.to) /\ members[m.to].token = m.claim /\ m.to \notin D)}

Sweep(D) ==
  LET swept == {x \in D : Connected(x) /\ \E i \in Sweepable(D) : messages[i].to = x} IN
  /\ Guard("sweep") /\ Sweepable(D) # {}
  /\ messages' = Take(messages, Sweepable(D), "interrupt")
  /\ members' = [x \in Names |-> IF x \in swept THEN Member(x, "sweep") ELSE members[x]]
  /\ holder' = [x \in Names |-> IF x \in swept THEN Nobody ELSE holder[x]]
  /\ UNCHANGED <<session, tokens, addresses, intruded>>

-----------------------------------------------------------------------------
(* Renames and removals.                                                   *)

FreeName(y) ==
  /\ ~IsMember(y)
  /\ Guard("free endpoint") =>
       \A i \in Indexes : Unsettled(messages[i]) => y \notin {messages[i].from, messages[i].to}

Follow(ms, x, y) ==
  [i \in DOMAIN ms |-> [ms[i] EXCEPT !.from = IF @ = x THEN y ELSE @, !.to = IF @ = x THEN y ELSE @]]

\* The session may not learn of it: then its old pair is worth nothing.
RenameItself(s, y) ==
  LET x == Alias(s) IN
  /\ Owner(s) /\ Connected(x) /\ Acts(s) /\ FreeName(y)
  /\ members' = [members EXCEPT ![y] = Member(x, "rename"), ![x] = Absent]
  /\ messages' = Follow(messages, x, y)
  /\ holder' = [holder EXCEPT ![y] = holder[x], ![x] = Nobody]
  /\ session' \in {session, [session EXCEPT ![s].alias = y]}
  /\ UNCHANGED <<tokens, addresses>>

\* By another member or a person: the member is offline, or judged dead and
\* swept in the same publication.
RenameOther(x, y) ==
  /\ IsMember(x) /\ FreeName(y)
  /\ members' = [members EXCEPT ![y] = [members[x] EXCEPT !.state = "offline"], ![x] = Absent]
  /\ messages' = Follow(Take(messages, ClaimsOf(x), "interrupt"), x, y)
  /\ holder' = [holder EXCEPT ![y] = Nobody, ![x] = Nobody]
  /\ UNCHANGED <<session, tokens, addresses, intruded>>

Remove(x) ==
  LET open(P(_)) == {i \in Indexes : Unsettled(messages[i]) /\ P(messages[i])}
      from(m)  == m.kind = "request" /\ m.from = x
      asked(m) == m.kind = "request" /\ m.to = x
      other(m) == m.kind # "request" /\ m.to = x
      cancelled == Take(messages, IF Guard("cancel") THEN open(from) ELSE {}, "cancel")
      discarded == Take(cancelled, IF Guard("discard") THEN open(other) ELSE {}, "discard")
  IN
  /\ IsMember(x)
  /\ messages' = Take(discarded, IF Guard("refuse") THEN open(asked) ELSE {}, "refuse")
  /\ members' = [members EXCEPT ![x] = Absent]
  /\ holder' = [holder EXCEPT ![x] = Nobody]
  /\ UNCHANGED <<session, tokens, addresses, intruded>>

-----------------------------------------------------------------------------
Init ==
  /\ members = [x \in Names |-> Absent]
  /\ messages = <<>>
  /\ session = [s \in Sessions |-> NoPlace]
  /\ tokens = 0
  /\ addresses = 0
  /\ holder = [x \in Names |-> Nobody]
  /\ intruded = FALSE

Next ==
  \/ \E s \in Sessions, x \in Names : Join(s, x) \/ RenameItself(s, x)
  \/ \E s \in Sessions : Leave(s) \/ Notes(s)
  \/ \E s \in Sessions, y \in Names, kind \in Kinds : Send(s, y, kind)
  \/ \E s \in Sessions, i \in 1 .. Records : Claim(s, i) \/ Release(s, i) \/ Settle(s, i)
  \/ \E D \in SUBSET Names : Sweep(D)
  \/ \E x, y \in Names : RenameOther(x, y)
  \/ \E x \in Names : Remove(x)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What holds in every state.                                              *)

\* A member holds one claim at most.
OneClaim == \A x \in Names : Cardinality(ClaimsOf(x)) <= 1

\* Who holds a claim is connected, under the token of the claim.
ClaimOwner == \A i \in Indexes : LET m == messages[i] IN
                Processing(m) => Connected(m.to) /\ members[m.to].token = m.claim

\* Only the holder of a membership changes anything in its name.
Fenced == ~intruded

\* A request has one result when it is over, none before; none if cancelled.
Results(i) == {j \in Indexes : messages[j].kind = "result" /\ messages[j].parent = i}
OneResult == \A i \in Indexes : LET m == messages[i] IN
  m.kind = "request" =>
    Cardinality(Results(i)) = (IF Unsettled(m) \/ m.end = "cancel" THEN 0 ELSE 1)

\* It goes to whoever asked, under whatever alias by now.
ResultToEmitter == \A j \in Indexes : LET m == messages[j] IN
  m.kind = "result" => LET request == messages[m.parent] IN
    /\ m.to = request.from /\ m.from = request.to
    /\ m.recipient = request.emitter

\* What is unsettled has a recipient, a request also an emitter.
Endpoints == \A i \in Indexes : LET m == messages[i] IN
  Unsettled(m) => IsMember(m.to) /\ (m.kind = "request" => IsMember(m.from))

\* A rename takes all along, and an alias inherits nothing of another's.
Follows == \A x \in Names : IsMember(x) => \A i \in Indexes : LET m == messages[i] IN
  /\ m.emitter = members[x].address => m.from = x
  /\ m.recipient = members[x].address => m.to = x
  /\ Unsettled(m) /\ m.to = x => m.recipient = members[x].address

NoSelf  == \A i \in Indexes : Unsettled(messages[i]) => messages[i].from # messages[i].to
Slots   == \A x \in Names : Delivered(x) <= Capacity
History == Len(messages) <= Records

\* A sweep finds exactly the claims of the connected members judged dead.
SweepExact == \A D \in SUBSET Names :
  Sweepable(D) = {i \in Indexes : Processing(messages[i]) /\ messages[i].to \in D}

UniqueTokens == \A x, y \in Names :
  x # y /\ IsMember(x) /\ IsMember(y) => members[x].token # members[y].token

\* States change by the rows of Lifecycles, and messages never disappear.
ByTheTable ==
  [][\A i \in Indexes :
       /\ i \in DOMAIN messages'
       /\ LET old == messages[i]  new == messages'[i] IN
            old.state # new.state \/ old.end # new.end =>
              \E row \in MessageTransitions :
                old.kind \in row.kinds /\ old.state \in row.from /\ row.to = new.state]_vars

Symmetry == Permutations(Names) \cup Permutations(Sessions)

-----------------------------------------------------------------------------
(* Progress.  Sessions may stop for ever, but then somebody sooner or      *)
(* later judges the claimant dead and sweeps (Presence shows that this is  *)
(* so); a claimant that settles, releases or leaves in time is not swept.  *)

SweepClaimant(i) == i \in Indexes /\ Processing(messages[i]) /\ Sweep({messages[i].to})

FairSpec == Spec /\ \A i \in 1 .. Records : WF_vars(SweepClaimant(i))

\* No claim lasts for ever.
Unstuck == \A i \in 1 .. Records :
  (i \in Indexes /\ Processing(messages[i])) ~> (i \in Indexes /\ ~Processing(messages[i]))

\* A claimed request yields a result for its emitter, unless that is removed
\* or the claim is given back before anything was done.
Answered == \A i \in 1 .. Records :
  (i \in Indexes /\ messages[i].kind = "request" /\ Processing(messages[i])) ~>
    (i \in Indexes /\ \/ messages[i].state = "pending"
                      \/ messages[i].end = "cancel"
                      \/ Results(i) # {})

-----------------------------------------------------------------------------
(* Goals: states that must be reachable.                                   *)

NoSweptResult     == \A i \in Indexes : messages[i].kind = "result" =>
                       ~(messages[messages[i].parent].end = "interrupt" /\ ~Connected(messages[i].from))
NoReviewedResult  == \A i \in Indexes : messages[i].kind = "result" => messages[i].end # "settle"
NoRefusedRequest  == \A i \in Indexes : messages[i].end # "refuse"
NoCancelledRequest == \A i \in Indexes : messages[i].end # "cancel"
NoLostRename      == \A s \in Sessions : LET place == session[s] IN
                       place.alias # Nobody => ~(~IsMember(place.alias) /\
                         \E x \in Names : Connected(x) /\ members[x].token = place.token)
=============================================================================
