// Package explore searches what can happen to the code that ships: whole clients, in one process and one
// synctest bubble, with the embedded server and its real scripts. It is tests alone: nothing imports it.
//
// # What a search does
//
// The network keeps each request, each answer and each message, until the search lets it through. What the
// users of a client do is up to the search as well: when one calls Lock, when its context ends, when it
// unlocks. So is when time passes, what breaks, and which process dies. Between two such steps every
// goroutine of the clients runs until it waits. A path is a sequence of steps. The search takes a step that
// it has not taken from a state, and goes on from there until nothing is left to do. Then all that is left
// runs to its end, and what remains in Redis is looked at.
//
// Two paths are at the same state when Redis has the same data, the same is under way, and each client has
// seen the same, in the same order. So nothing of the inside of a client has to be known. The order of what
// two clients do to themselves makes no difference.
//
// What goes wrong happens as often as a scene allows, wherever that is worst.
//
// # What must be true
//
//   - No two hold what excludes each other, of those that trust their hold (ME).
//   - Tokens grow from hold to hold (TOK).
//   - What a user trusts to hold is so in Redis (TRUST).
//   - Where nothing was lost, whoever waits for what is free gets it by what is under way. No time passes.
//     After a connection broke it takes a second at most, which is less than the poll. After a death, or when
//     time passed, it takes the end of a lease and two questions (WAKE).
//   - When all is over, nothing is left in Redis: no owner, nothing queued, no permit taken. Where nothing
//     was lost that is so at once. After a connection broke it is so within a second, and after a death with
//     the end of its leases (LEFT).
//   - Each call returns what its documentation says: no error but for what the search did (ERR).
//
// # What it is not
//
// It does not replace [internal/test/model], which visits every state of an abstract process, and cannot show that
// the code does the same. This one runs the code, some thousand times slower: so it visits a part of what may
// happen, at random, and all of it only where a scene is small. A goroutine that is about to send something
// and another one of its process are not told apart in their order: what races inside a process is left to
// the race detector, internal/grant and internal/test/contract. A silence of half a lease is left out: a client
// cuts the connection before. LATCHKEY_SEED repeats a search, LATCHKEY_EXPLORE=1m says for how long each
// scene is searched.
package explore
