package witness

// The commands of latches, as modes of records.
const (
	LatchSet int64 = iota
	LatchDown
	LatchDownAs
	LatchAwait
	LatchRearm
	LatchRemove
	LatchCount
	LatchAwaitOpen // one that is not set is open
	LatchAwaitSet  // one that is not set is waited for
)

// Why a command of a latch was refused, as a record's second result.
const (
	_ int64 = iota
	LatchNotSet
	LatchInvalid
)

// The commands of plain permits, as modes of records.
const (
	PlainTake int64 = iota
	PlainPut
	PlainLook
	PlainDrain
	PlainAdd
	PlainInitialize // TrySetPermits
	PlainErase      // Delete
)

// The calls of what is done once or shared, as modes of records.
const (
	DoOnce int64 = iota
	TryOnce
	ReadResult
	IsDone
	ShareRun
)
