/*
 * The claim protocol of package lock: one event, its record in the store, two
 * sidecars with a journal each, the sweep, the app, a sender that sends until it
 * is acknowledged, and, under HOLD, an operator.
 *
 * What can go wrong, MISHAPS times in all:
 *
 *   a write to the store gets lost, its reply does, or it comes late
 *   a sidecar is killed, wherever it is, and starts again
 *   the connection to the app breaks, and the app works on
 *   the app fails: with or without an effect
 *   an operator cuts an attempt (release)
 *   a sidecar stands still, before it sent, until its lease is over
 *
 * Other pauses are free: any process may stand still while time passes.
 *
 * Time is counted in ticks. What counts down is what is left: of the record's
 * lease and of its runs-until by the store's clock, of the holder's lease by its
 * own, of the app limit. A tick waits for an app that is at its limit.
 *
 * What is checked:
 *
 *   one     never two runs while one may still be running
 *   told    under RETRY a run after an effect is announced (doubt)
 *   once    under HOLD and WITNESS never two effects
 *   proof   never a 2xx without an effect
 *   begun   under HOLD no attempt follows an unknown one
 *   undone  a begin that was given up never stands once its undo is paid
 *   settles (LTL) the event comes to rest as done, and its sender knows it
 *
 * One of RETRY, HOLD and WITNESS is the policy. BUG_... seeds a bug. Versions and
 * tokens are used again when nobody has them any more, so that the states are
 * finite.
 */

#ifndef MISHAPS
#define MISHAPS 2
#endif
#ifndef LEASE
#define LEASE 1
#endif
#ifndef APP
#define APP 2
#endif

#ifdef BUG_LIMIT /* begin leaves out the app limit */
#define RUNS 0
#else
#define RUNS (LEASE + APP)
#endif

mtype = { none, running, done, released, unknown };
mtype = { ok2xx, failed, refused };

typedef Rec {
	unsigned st : 4 = none;
	unsigned ver : 5;
	unsigned tok : 4;
	unsigned lease : 2;
	unsigned runs : 3;
	unsigned doubt : 1;
	unsigned words : 3 /* how often an operator has spoken */
};

/* Side is what a process knows: what it read last, its attempt, its next write. */
typedef Side {
	Rec x;
	unsigned tok : 4;
	unsigned ver : 5;
	unsigned next : 5;
	unsigned exp : 5;
	unsigned st : 4;
	unsigned runs : 3;
	unsigned doubt : 1;
	unsigned replied : 1;
	unsigned words : 3
};

/* Debt is a write that is owed to the store. It outlives its sidecar. */
typedef Debt {
	unsigned set : 1;
	unsigned undo : 1;
	unsigned late : 1;
	unsigned st : 4;
	unsigned exp : 5;
	unsigned ver : 5;
	unsigned tok : 4;
	unsigned runs : 3;
	unsigned doubt : 1;
	unsigned words : 3
};

/* Late is a change that is still under way. Barred says that it must not come to stand. */
typedef Late {
	unsigned set : 1;
	unsigned barred : 1;
	unsigned st : 4;
	unsigned exp : 5;
	unsigned etok : 4;
	unsigned ver : 5;
	unsigned tok : 4;
	unsigned lease : 2;
	unsigned runs : 3;
	unsigned doubt : 1;
	unsigned words : 3
};

#define SWEEP 4
#define OPERATOR 5

Rec R;          /* what stands in the store */
Side S[6];      /* two sidecars, two payers, the sweep, the operator */
Debt D[2];      /* the journals */
Late L;
byte hl[2];     /* the holder's own lease, per sidecar */
bool unsent[2]; /* has begun, and sent nothing yet */

bool busy;      /* the app is at work */
byte left;      /* of its limit */
byte worker;    /* the token it works for */
bit caller;     /* and the sidecar that has it */
mtype ans[2];   /* its answer on the way to a sidecar; 0: none */

byte effects;
bool acked;
byte mishaps = MISHAPS; /* that may still happen */

#define hasVer(k, v) (S[k].x.ver == v || S[k].ver == v || S[k].next == v || S[k].exp == v)
#define usedVer(v) (R.ver == v || D[0].exp == v || D[0].ver == v || D[1].exp == v || D[1].ver == v || \
	(L.set && (L.exp == v || L.ver == v)) || \
	hasVer(0, v) || hasVer(1, v) || hasVer(2, v) || hasVer(3, v) || hasVer(4, v) || hasVer(5, v))
#define hasTok(k, t) (S[k].x.tok == t || S[k].tok == t)
#define usedTok(t) (R.tok == t || D[0].tok == t || D[1].tok == t || (L.set && (L.tok == t || L.etok == t)) || worker == t || \
	hasTok(0, t) || hasTok(1, t) || hasTok(2, t) || hasTok(3, t) || hasTok(4, t) || hasTok(5, t))

byte fresh = 1;

/* fresh gives a version, or a token, that nobody has. */
inline freshVer(theVer) {
	do
	:: usedVer(fresh) -> fresh++
	:: else -> break
	od;
	theVer = fresh; fresh = 1
}
inline freshTok(theTok) {
	do
	:: usedTok(fresh) -> fresh++
	:: else -> break
	od;
	theTok = fresh; fresh = 1
}
#ifdef BUG_TOKEN /* a change compares the token alone */
#define EXPECTED(e, t) ((e) == 0 -> R.ver == 0 : R.tok == (t))
#else
#define EXPECTED(e, t) (R.ver == (e))
#endif

inline look(me) {
	S[me].x.st = R.st; S[me].x.ver = R.ver; S[me].x.tok = R.tok; S[me].x.lease = R.lease; S[me].x.runs = R.runs;
	S[me].x.doubt = R.doubt; S[me].x.words = R.words
}

inline forget(me) {
	S[me].x.st = none; S[me].x.ver = 0; S[me].x.tok = 0; S[me].x.lease = 0; S[me].x.runs = 0;
	S[me].x.doubt = false; S[me].x.words = 0; S[me].next = 0; S[me].replied = false
}

inline clean(me) {
	forget(me); S[me].tok = 0; S[me].ver = 0; S[me].exp = 0; S[me].st = 0; S[me].runs = 0;
	S[me].doubt = false; S[me].words = 0
}

/* apply is the store's compare-and-set. */
inline apply(aExp, aExpTok, aSt, aVer, aTok, aLease, aRuns, aDoubt, aWords) {
	if
	:: R.ver != aVer && EXPECTED(aExp, aExpTok) ->
		R.st = aSt; R.ver = aVer; R.tok = aTok; R.lease = aLease; R.runs = aRuns; R.doubt = aDoubt; R.words = aWords
	:: else
	fi
}

/* write is a change by a bad network. Where the reply comes, S[me].x is what
 * stands. */
inline write(me, aExp, aExpTok, aSt, aVer, aTok, aLease, aRuns, aDoubt, aWords) {
	{
		if
		:: apply(aExp, aExpTok, aSt, aVer, aTok, aLease, aRuns, aDoubt, aWords); look(me); S[me].replied = true
		:: mishaps > 0 -> mishaps--; S[me].replied = false
		:: mishaps > 0 -> mishaps--; apply(aExp, aExpTok, aSt, aVer, aTok, aLease, aRuns, aDoubt, aWords); S[me].replied = false
		:: mishaps > 0 && !L.set -> mishaps--; S[me].replied = false;
			L.set = true; L.barred = false; L.exp = aExp; L.etok = aExpTok; L.st = aSt; L.ver = aVer; L.tok = aTok;
			L.lease = aLease; L.runs = aRuns; L.doubt = aDoubt; L.words = aWords
		fi
	}
}

#define HELD(me, t) (S[me].x.tok == (t) && (S[me].x.st == running || S[me].x.st == unknown))
#define MINE(me) (S[me].x.ver == S[me].next)

/* owe puts a settle into the journal. */
inline owe(me, oSt, oRuns) {
	D[me].set = true; D[me].undo = false; D[me].late = false; D[me].st = oSt; D[me].exp = S[me].ver; D[me].ver = S[me].next;
	D[me].tok = S[me].tok; D[me].runs = oRuns; D[me].doubt = S[me].doubt; D[me].words = S[me].words
}

inline paid(me) {
	D[me].set = false; D[me].undo = false; D[me].late = false; D[me].st = 0; D[me].exp = 0; D[me].ver = 0;
	D[me].tok = 0; D[me].runs = 0; D[me].doubt = false; D[me].words = 0
}

/* After its undo is paid, or given up on, a begin that is under way is barred. */
inline bar(theTok) { if :: L.set && L.st == running && L.tok == theTok -> L.barred = true :: else fi }

active proctype Network() {
end:
	do
	:: atomic { L.set ->
		if
		:: L.barred && R.ver != L.ver && EXPECTED(L.exp, L.etok) -> assert(false) /* undone */
		:: else
		fi;
		apply(L.exp, L.etok, L.st, L.ver, L.tok, L.lease, L.runs, L.doubt, L.words);
		L.set = false; L.barred = false; L.exp = 0; L.etok = 0; L.st = 0; L.ver = 0; L.tok = 0; L.lease = 0; L.runs = 0; L.doubt = false; L.words = 0
	}
	od
}

#define COUNT(c) if :: c > 0 -> c-- :: else fi

/* A tick that ends the lease of a sidecar which has sent nothing. */
#define STILL (unsent[0] && hl[0] == 1 || unsent[1] && hl[1] == 1)

active proctype Clock() {
end:
	do
	:: d_step {
		!(busy && left == 1) && !(STILL && mishaps == 0) && (R.lease > 0 || R.runs > 0 || hl[0] > 0 || hl[1] > 0 || busy) ->
		if :: STILL -> mishaps-- :: else fi;
		COUNT(R.lease); COUNT(R.runs); COUNT(hl[0]); COUNT(hl[1]);
		if :: busy -> left-- :: else fi
	}
	od
}

active proctype App() {
	bool effect;
end:
	do
	:: atomic { busy ->
		if
		:: effects++; effect = true
		:: mishaps > 0 -> mishaps--; effect = false
		fi;
#ifndef RETRY
		assert(effects <= 1) /* once */
#endif
	}
	atomic {
		if
		:: S[caller].tok != worker || S[caller].st != 0 /* the connection is gone */
		:: S[caller].tok == worker && S[caller].st == 0 ->
			if
			:: effect -> ans[caller] = ok2xx
			:: effect && mishaps > 0 -> mishaps--; ans[caller] = failed
			:: !effect -> ans[caller] = failed
			:: !effect -> ans[caller] = refused
			fi
		fi;
		busy = false; worker = 0; caller = 0; left = 0; effect = false
	}
	od
}


/* What a sidecar does next. Between two steps it may stand still, or be killed. */
mtype = { idle, lapse, testify, begin, first, waits, settle };
mtype pc[2] = idle;

inline rest(me) { pc[me] = idle; hl[me] = 0; unsent[me] = false; ans[me] = 0; clean(me) }

/* acknowledge is a 2xx to the sender. */
inline acknowledge() { assert(effects > 0); acked = true } /* proof */

/* decide says what the record means that was read last. */
inline decide(me) {
	if
	:: S[me].x.st == done -> acknowledge(); rest(me)
	:: S[me].x.st == running && S[me].x.lease > 0 -> rest(me)
#ifdef BUG_BLIND /* a lease that is over is taken straight */
	:: S[me].x.st == running && S[me].x.lease == 0 -> pc[me] = begin
#elif defined(BUG_NOLAPSE) /* nobody says that a lease is over */
	:: S[me].x.st == running && S[me].x.lease == 0 -> rest(me)
#else
	:: S[me].x.st == running && S[me].x.lease == 0 -> pc[me] = lapse
#endif
	:: S[me].x.st == none || S[me].x.st == released -> pc[me] = begin
	:: S[me].x.st == unknown ->
#if defined(HOLD)
		rest(me)
#elif defined(WITNESS)
		pc[me] = testify
#elif defined(BUG_NOWAIT) /* a takeover does not wait for the app */
		pc[me] = begin
#else
		if :: S[me].x.runs > 0 -> rest(me) :: else -> pc[me] = begin fi
#endif
	fi
}

inline beginIt(me) {
#ifdef HOLD
	assert(S[me].x.st != unknown && S[me].x.st != running); /* begun */
#endif
	freshTok(S[me].tok); freshVer(S[me].next); hl[me] = LEASE; unsent[me] = true;
	S[me].doubt = S[me].x.doubt; S[me].words = S[me].x.words; S[me].exp = S[me].x.ver;
	write(me, S[me].exp, S[me].x.tok, running, S[me].next, S[me].tok, LEASE, RUNS, S[me].doubt, S[me].words);
	if
	:: !S[me].replied ->
#ifdef BUG_NOUNDO /* a begin that was given up is not undone */
		bar(S[me].tok);
#else
		D[me].set = true; D[me].undo = true; D[me].exp = S[me].exp; D[me].tok = S[me].tok;
		D[me].doubt = S[me].doubt; D[me].words = S[me].words;
#endif
		rest(me)
	:: S[me].replied && !MINE(me) ->
		hl[me] = 0; unsent[me] = false; S[me].tok = 0; S[me].exp = 0; S[me].doubt = false; S[me].words = 0; S[me].next = 0; decide(me)
	:: S[me].replied && MINE(me) -> S[me].ver = S[me].next; forget(me); S[me].exp = 0; pc[me] = first
	fi
}

inline renewIt(me) {
	freshVer(S[me].next); hl[me] = LEASE;
	write(me, S[me].ver, S[me].tok, running, S[me].next, S[me].tok, LEASE, LEASE + APP, S[me].doubt, S[me].words);
	if
	:: !S[me].replied -> freshVer(S[me].next); owe(me, released, 0); rest(me)
	:: S[me].replied && MINE(me) -> S[me].ver = S[me].next; forget(me)
	:: S[me].replied && !MINE(me) && HELD(me, S[me].tok) -> S[me].ver = S[me].x.ver; hl[me] = 0; forget(me)
	:: S[me].replied && !MINE(me) && !HELD(me, S[me].tok) -> rest(me) /* fenced */
	fi
}

/* ended answers the sender, when the settle stands or is kept. */
inline ended(me) {
	if :: S[me].st == done -> acknowledge() :: else fi;
	rest(me)
}

inline settleIt(me) {
	write(me, S[me].ver, S[me].tok, S[me].st, S[me].next, S[me].tok, 0, S[me].runs, S[me].doubt, S[me].words);
	if
	:: !S[me].replied -> owe(me, S[me].st, S[me].runs); ended(me)
	:: S[me].replied && MINE(me) -> ended(me)
	:: S[me].replied && !MINE(me) && HELD(me, S[me].tok) -> S[me].ver = S[me].x.ver; forget(me); freshVer(S[me].next)
	:: S[me].replied && !MINE(me) && !HELD(me, S[me].tok) ->
		/* Fenced. A 2xx is kept: the payer finds out what stands. */
		if :: S[me].st == done -> owe(me, done, 0) :: else fi;
		ended(me)
	fi
}

/* A sender sends to either sidecar until it is acknowledged. */
proctype Sidecar(byte me) {
end:
	do
	:: atomic { mishaps > 0 && pc[me] != idle && !acked -> mishaps--; rest(me) } /* it is killed */
	:: atomic { pc[me] == idle && !acked && !D[me].set -> look(me); decide(me) } /* what is owed comes first */
	:: atomic { pc[me] == lapse -> freshVer(S[me].next);
		write(me, S[me].x.ver, S[me].x.tok, unknown, S[me].next, S[me].x.tok, 0, S[me].x.runs, true, S[me].x.words);
		if :: S[me].replied -> S[me].next = 0; decide(me) :: else -> rest(me) fi }
#ifdef WITNESS
	:: atomic { pc[me] == testify && S[me].st == 0 -> /* it is asked */
		S[me].st = (effects > 0 -> done : released);
#ifndef BUG_EARLY /* a witness's no counts before the app limit */
		if :: S[me].st == released && S[me].x.runs > 0 -> rest(me) :: else fi
#endif
		}
	:: atomic { pc[me] == testify && S[me].st != 0 -> freshVer(S[me].next); /* what it said is written */
#ifdef BUG_OLDNO /* a no counts for any version */
		look(me);
#endif
		write(me, S[me].x.ver, S[me].x.tok, S[me].st, S[me].next, S[me].x.tok, 0, 0, S[me].x.doubt, S[me].x.words);
		S[me].st = 0;
		if :: S[me].replied -> S[me].next = 0; decide(me) :: else -> rest(me) fi }
#endif
	:: atomic { pc[me] == begin -> beginIt(me) }
#ifdef BUG_SENDLATE /* the first byte is sent on any lease */
	:: atomic { pc[me] == first ->
#else
	:: atomic { pc[me] == first && hl[me] == 0 -> renewIt(me) }
	:: atomic { pc[me] == first && hl[me] > 0 -> /* this look and the first byte are one step */
#endif
		assert(!busy); /* one */
#ifdef RETRY
		assert(effects == 0 || S[me].doubt); /* told */
#endif
		busy = true; left = APP; worker = S[me].tok; caller = me; unsent[me] = false; hl[me] = 0; pc[me] = waits }
	:: atomic { pc[me] == waits && ans[me] != 0 ->
		if
		:: ans[me] == ok2xx -> S[me].st = done
		:: ans[me] == failed -> S[me].st = unknown; S[me].doubt = true
		:: ans[me] == refused -> S[me].st = released
		fi;
		ans[me] = 0; freshVer(S[me].next); pc[me] = settle }
	:: atomic { pc[me] == waits && ans[me] == 0 && mishaps > 0 -> /* the connection breaks */
		mishaps--; S[me].st = unknown; S[me].doubt = true;
		S[me].runs = (busy && worker == S[me].tok -> left : 0); freshVer(S[me].next); pc[me] = settle }
	:: atomic { pc[me] == settle -> settleIt(me) }
	od
}

inline payIt(j) {
	S[j + 2].next = D[j].ver;
	write(j + 2, D[j].exp, D[j].tok, D[j].st, D[j].ver, D[j].tok, 0, D[j].runs, D[j].doubt, D[j].words);
	if
	:: !S[j + 2].replied
	:: S[j + 2].replied && MINE(j + 2) -> paid(j)
	:: S[j + 2].replied && !MINE(j + 2) && HELD(j + 2, D[j].tok) && !D[j].late -> D[j].exp = S[j + 2].x.ver; freshVer(D[j].ver)
	:: S[j + 2].replied && !MINE(j + 2) && !(HELD(j + 2, D[j].tok) && !D[j].late) ->
		if
		:: D[j].st != done -> paid(j)
		:: D[j].st == done && S[j + 2].x.words != D[j].words -> paid(j)
		:: D[j].st == done && S[j + 2].x.words == D[j].words && (S[j + 2].x.st == unknown || S[j + 2].x.st == released) ->
			D[j].exp = S[j + 2].x.ver; freshVer(D[j].ver); D[j].late = true; D[j].doubt = S[j + 2].x.doubt
		:: D[j].st == done && S[j + 2].x.words == D[j].words && S[j + 2].x.st == running /* it waits */
		:: D[j].st == done && S[j + 2].x.words == D[j].words && (S[j + 2].x.st == done || S[j + 2].x.st == none) -> paid(j)
		fi
	fi;
	clean(j + 2)
}

/* Payer writes what a journal owes. It outlives crashes, as the journal does: to
 * it they are no more than a pause. */
proctype Payer(byte j) {
#define p (j + 2)
end:
	do
	:: atomic { D[j].set && D[j].undo && S[p].next == 0 -> look(p); freshVer(S[p].next) }
	:: atomic { D[j].set && D[j].undo && S[p].next != 0 ->
		if
		:: (S[p].x.st == none && D[j].exp == 0) || HELD(p, D[j].tok) ->
			write(p, S[p].x.ver, S[p].x.tok, released, S[p].next, D[j].tok, 0, 0, D[j].doubt, D[j].words)
		:: !((S[p].x.st == none && D[j].exp == 0) || HELD(p, D[j].tok)) && S[p].x.ver == D[j].exp && S[p].x.ver != 0 ->
			write(p, S[p].x.ver, S[p].x.tok, S[p].x.st, S[p].next, S[p].x.tok, S[p].x.lease, S[p].x.runs, S[p].x.doubt, S[p].x.words)
		:: else -> S[p].replied = true; S[p].next = S[p].x.ver /* it can't stand any more */
		fi;
		if
		:: S[p].replied && MINE(p) -> bar(D[j].tok); paid(j)
		:: else
		fi;
		clean(p) }
	:: atomic { D[j].set && !D[j].undo -> payIt(j) }
	od
#undef p
}

/* Sweep writes unknown where nobody asks. */
active proctype Sweep() {
end:
	do
#ifndef BUG_NOLAPSE
	:: atomic { R.st == running && R.lease == 0 && S[SWEEP].next == 0 -> look(SWEEP); freshVer(S[SWEEP].next) }
#endif
	:: atomic { S[SWEEP].next != 0 ->
		write(SWEEP, S[SWEEP].x.ver, S[SWEEP].x.tok, unknown, S[SWEEP].next, S[SWEEP].x.tok, 0, S[SWEEP].x.runs, true, S[SWEEP].x.words);
		clean(SWEEP) }
	od
}

/* An operator may cut an attempt that seems to hang, whatever the policy: that
 * fences its holder, and says nothing of the effect. Under HOLD one looks into
 * the books before deciding, and decides when the app can't be working any more. */
active proctype Operator() {
	byte v, t;
end:
	do
	:: atomic { mishaps > 0 && R.st == running -> mishaps--;
		freshVer(v); freshTok(t); R.st = unknown; R.ver = v; R.tok = t; R.lease = 0; R.doubt = true; v = 0; t = 0 }
#ifdef HOLD
	:: atomic { R.st == unknown && R.runs == 0 && S[OPERATOR].next == 0 ->
		look(OPERATOR); freshVer(S[OPERATOR].next); freshTok(S[OPERATOR].tok);
		S[OPERATOR].st = (effects > 0 -> done : released) }
	:: atomic { S[OPERATOR].next != 0 ->
		write(OPERATOR, S[OPERATOR].x.ver, S[OPERATOR].x.tok, S[OPERATOR].st, S[OPERATOR].next, S[OPERATOR].tok, 0, 0,
			S[OPERATOR].x.doubt, S[OPERATOR].x.words + 1);
		clean(OPERATOR) }
#endif
	od
}

init {
	atomic { run Sidecar(0); run Sidecar(1); run Payer(0); run Payer(1) }
}

ltl settles { <> [] (acked && R.st == done) }
