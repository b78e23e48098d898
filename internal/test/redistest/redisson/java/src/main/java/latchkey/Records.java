package latchkey;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * The file with every hold of a run: mapped into memory, so that what is
 * written survives the JVM, in little-endian words of 64 bits.
 *
 * <pre>
 * header      magic, threads, capacity, 0, 0, 0, 0, 0
 * per thread  records begun, 0, 0, 0, 0, 0, 0, 0
 *             then capacity times: asked, enter, leave, token, flag, released
 * </pre>
 */
final class Records {

    static final int ASKED = 0;
    static final int ENTER = 1;
    static final int LEAVE = 2;
    static final int TOKEN = 3;
    static final int FLAG = 4;
    static final int RELEASED = 5;

    private static final long MAGIC = 0x4c4b31;
    private static final int HEADER = 8;
    private static final int RECORD = 6;
    /** So many records, of all threads together, keep a file below 100 MB. */
    private static final int MOST = 2_000_000;
    private static final VarHandle WORDS =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private final MappedByteBuffer file;
    private final int capacity;

    /** Room for {@code wanted} records of each of the threads, or for as many as fit. */
    Records(Path path, int threads, long wanted) throws IOException {
        capacity = (int) Math.min(wanted, MOST / threads);
        long words = HEADER + (long) threads * region();
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.CREATE,
                StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            file = channel.map(FileChannel.MapMode.READ_WRITE, 0, words * Long.BYTES);
        }
        set(1, threads);
        set(2, capacity);
        set(0, MAGIC);
    }

    int capacity() {
        return capacity;
    }

    /** Begins a record: what is asked for is written first, and then it counts. */
    void begin(int thread, int record, long flag, long asked) {
        put(thread, record, FLAG, flag);
        put(thread, record, ASKED, asked);
        set(HEADER + thread * region(), record + 1);
    }

    void put(int thread, int record, int field, long value) {
        set(HEADER + thread * region() + HEADER + record * RECORD + field, value);
    }

    private int region() {
        return HEADER + capacity * RECORD;
    }

    /** With release semantics, so that a dead JVM leaves the words in the order of the program. */
    private void set(int word, long value) {
        WORDS.setRelease(file, word * Long.BYTES, value);
    }
}
