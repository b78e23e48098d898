--!df flags=allow-undeclared-keys
return redis.call('TIME')
