package latchkey;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;

/** The Redisson instances of this program, each with an identity of its own. */
final class Clients {

    private final List<RedissonClient> clients = new ArrayList<>();

    Clients(Settings settings) {
        for (int i = 0; i < settings.clients(); i++) {
            clients.add(Redisson.create(config(settings)));
        }
    }

    static String version() {
        return Redisson.class.getPackage().getImplementationVersion();
    }

    int size() {
        return clients.size();
    }

    RedissonClient get(int index) {
        if (index < 0 || index >= clients.size()) {
            throw new IllegalArgumentException("no client " + index + ", there are " + clients.size());
        }
        return clients.get(index);
    }

    /** The client of the word {@code x@index}, or the first one when the word has no index. */
    RedissonClient of(String id) {
        int at = id.lastIndexOf('@');
        return get(at < 0 ? 0 : Integer.parseInt(id.substring(at + 1)));
    }

    void shutdown() {
        for (RedissonClient client : clients) {
            client.shutdown(0, 1, TimeUnit.SECONDS);
        }
    }

    private static Config config(Settings settings) {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        if (settings.watchdogMillis() > 0) {
            config.setLockWatchdogTimeout(settings.watchdogMillis());
        }
        if (settings.cluster()) {
            config.useClusterServers()
                    .addNodeAddress(settings.redis().toArray(new String[0]))
                    .setReadMode(ReadMode.MASTER)
                    .setMasterConnectionMinimumIdleSize(2)
                    .setSlaveConnectionMinimumIdleSize(1)
                    .setSubscriptionConnectionMinimumIdleSize(1);
        } else {
            config.useSingleServer()
                    .setAddress(settings.redis().get(0))
                    .setConnectionMinimumIdleSize(2)
                    .setSubscriptionConnectionMinimumIdleSize(1);
        }
        return config;
    }
}
