// Package retry is what is done while Redis does not answer: one probe at a time for a whole client, pauses that
// grow, and waits that end with the client.
package retry
