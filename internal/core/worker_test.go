package core_test

func worker(string) {}
