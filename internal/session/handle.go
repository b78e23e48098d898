package session

// Handle is what is behind latchkey.Client: a client, of which nothing can be reached from outside of this
// module. The client has exported fields, for the packages inside.
type Handle struct{ client *Client }

// Handle returns one; nil of no client.
func (c *Client) Handle() *Handle {
	if c == nil {
		return nil
	}
	return &Handle{c}
}

// Client returns whose handle it is; nil for none.
func (h *Handle) Client() *Client {
	if h == nil {
		return nil
	}
	return h.client
}
