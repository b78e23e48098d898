package latchkey;

/** One hold of a gate, and how it is given back; a token of "0" stands for none. */
record Hold(String token, Runnable giveBack) {

    void release() {
        giveBack.run();
    }
}
