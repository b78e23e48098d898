// Package retry is what is done while Redis does not answer: health probes, one at a time for each part of a
// cluster; pauses that grow; waits that end with the client, and waits until nothing is under way. All rooms
// that send commands use it.
package retry
