package latchkey;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.List;
import java.util.stream.Stream;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Finds the gate that a kind and a name stand for. */
final class Gates {

    private Gates() {
    }

    static Gate open(RedissonClient client, String kind, String name) {
        return switch (kind) {
            case "lock" -> new LockGate(client.getLock(name));
            case "fenced" -> new FencedGate(client.getFencedLock(name));
            case "fair" -> new LockGate(client.getFairLock(name));
            case "spin" -> new LockGate(client.getSpinLock(name));
            case "read" -> new LockGate(client.getReadWriteLock(name).readLock());
            case "write" -> new LockGate(client.getReadWriteLock(name).writeLock());
            case "counting" -> new CountingGate(client.getSemaphore(name));
            case "permits" -> new PermitsGate(client.getPermitExpirableSemaphore(name));
            case "multi" -> new LockGate(client.getMultiLock(
                    Stream.of(name.split(",")).map(client::getLock).toArray(RLock[]::new)));
            case "faster" -> new LockGate(faster(client, name));
            default -> throw new IllegalArgumentException("unknown kind " + kind);
        };
    }

    /** The multilock in one hash, of {@code group/value,value}; old versions have none. */
    private static RLock faster(RedissonClient client, String name) {
        String[] parts = name.split("/", 2);
        if (parts.length < 2) {
            throw new IllegalArgumentException("not group/value,value: " + name);
        }
        try {
            Method method = RedissonClient.class.getMethod("getMultiLock", String.class, Collection.class);
            return (RLock) method.invoke(client, parts[0], List.of(parts[1].split(",")));
        } catch (NoSuchMethodException e) {
            throw new UnsupportedOperationException("Redisson " + Clients.version() + " has no faster multilock");
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(e.getCause());
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }
}
