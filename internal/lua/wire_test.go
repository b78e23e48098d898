package lua_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/lua"
)

// messages are one of each kind, and others. Version 1 wrote the readable ones: every later version must read
// them.
var messages = map[string]lua.Message{
	"1 g 7 1700000000000001 32 1 1700000000000000 2000 a b": {
		Kind: lua.Grant, Number: 7, Owned: lua.Owned{Token: 1700000000000001, Reserved: 32, Others: true},
		Now: 1700000000000000, Lease: 2000, Name: "a b",
	},
	"1 g 7 1700000000000001 0 0 1700000000000000 10 a": {
		Kind: lua.Grant, Number: 7, Owned: lua.Owned{Token: 1700000000000001}, Now: 1700000000000000, Lease: 10, Name: "a",
	},
	"1 g 7 1700000000000001 32 0 1700000000000000 10 a": {
		Kind: lua.Grant, Number: 7, Owned: lua.Owned{Token: 1700000000000001, Reserved: 32}, Now: 1700000000000000, Lease: 10, Name: "a",
	},
	"1 s 7 1700000000000001 0 0 1700000000000000 10 a": {
		Kind: lua.Grant, Family: lua.Leased, Number: 7, Owned: lua.Owned{Token: 1700000000000001},
		Now: 1700000000000000, Lease: 10, Name: "a",
	},
	"1 r 7 1700000000000001 0 0 1700000000000000 10 a": {
		Kind: lua.Grant, Family: lua.ReadWrite, Number: 7, Owned: lua.Owned{Token: 1700000000000001},
		Now: 1700000000000000, Lease: 10, Name: "a",
	},
	"1 c 7 1 0 0 1700000000000000 10 a": {
		Kind: lua.Grant, Family: lua.Plain, Number: 7, Owned: lua.Owned{Token: 1}, Now: 1700000000000000, Lease: 10, Name: "a",
	},
	"1 a 7 a":                            {Kind: lua.Ask, Number: 7, Name: "a"},
	"1 a 7123456789 a":                   {Kind: lua.Ask, Number: 7, Secret: 123456789, Name: "a"},
	"1 w 7 a b":                          {Kind: lua.Want, Number: 7, Name: "a b"},
	"1 t 7 b:8 a b":                      {Kind: lua.Attempt, Number: 7, Asker: "b:8", Name: "a b"},
	"1 t 7 a":                            {},
	"1 f 7 8 a b":                        {Kind: lua.Forced, Number: 7, Owned: lua.Owned{Token: 8}, Name: "a b"},
	"1 l 7 50 a":                         {Kind: lua.Ends, Number: 7, Lease: 50, Name: "a"},
	"1 p 9":                              {Kind: lua.Ping, Number: 9},
	"2 g 7 1 1 1 a":                      {},
	"1 f 7 9007199254740991 a":           {},
	"1 g 7 1 0 0 9007199254740991 10 a":  {},
	"1 g 7 1 0 -1 1700000000000000 10 a": {},
	"1 x 7":                              {},
	"1 g 7 a":                            {},
	"":                                   {},
	"0":                                  {},
}

func TestMessages(t *testing.T) {
	for text, want := range messages {
		require.Equal(t, want, lua.ParseMessage(text), text)
	}
}

// entries are what version 1 wrote: every later version must read them.
var entries = map[string]lua.Claim{
	"1:a:7:60000:0":        {Owner: "a:7", Lease: 60_000},
	"1:a:7:60000:32":       {Owner: "a:7", Lease: 60_000, Demand: lua.Demand{Permits: 32}},
	"1:a:7:60000:5000l":    {Owner: "a:7", Lease: 60_000, Demand: lua.Demand{Permits: 5000, Lingers: true}},
	"1:a:712345:1000:3gp":  {Owner: "a:712345", Lease: 1000, Demand: lua.Demand{Permits: 3, Pass: true, Grow: true}},
	"1:a:7:1000:1t9999":    {Owner: "a:7", Lease: 1000, Demand: lua.Demand{Permits: 1, Turns: 9999}},
	"1:shop_=a:7:1000:0us": {Owner: "shop_=a:7", Lease: 1000, Demand: lua.Demand{Shared: true, Unset: true}},
}

// noEntries are what nobody of ours writes into a queue.
var noEntries = []string{
	"", "x", "1:a:7:60000", "2:a:7:60000:0", "1:a:7:60000:0:0",
	"1:a:7:60000:2147483648", "1:a:7:60000:99999999999999999999", "1:a:7:60000:", "1:a:7:60000:d",
}

func TestEntries(t *testing.T) {
	for text, want := range entries {
		require.Equal(t, text, want.Entry())
		read, err := lua.ParseEntry(text)
		require.NoError(t, err)
		require.Equal(t, lua.Entry{Owner: want.Owner, Permits: want.Permits, Shared: want.Shared}, read)
	}
	for _, text := range noEntries {
		read, err := lua.ParseEntry(text)
		require.ErrorIs(t, err, lua.ErrReply, text)
		require.Zero(t, read)
	}
}
