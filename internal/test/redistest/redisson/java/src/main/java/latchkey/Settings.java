package latchkey;

import java.util.List;

/**
 * What the command line says: where Redis is, whether it is a cluster, the
 * watchdog's timeout (0: Redisson's own default) and how many clients to make.
 */
record Settings(List<String> redis, boolean cluster, long watchdogMillis, int clients) {

    static final String USAGE =
            "usage: Driver --redis redis://HOST:PORT[,...] [--cluster] [--watchdog MS] [--clients N]";

    static Settings parse(String[] args) {
        List<String> redis = List.of();
        boolean cluster = false;
        long watchdogMillis = 0;
        int clients = 1;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "--redis" -> redis = List.of(value(args, ++i).split(","));
                case "--cluster" -> cluster = true;
                case "--watchdog" -> watchdogMillis = Long.parseLong(value(args, ++i));
                case "--clients" -> clients = Integer.parseInt(value(args, ++i));
                default -> throw new IllegalArgumentException("unknown argument " + args[i]);
            }
        }
        if (redis.isEmpty() || clients < 1 || (redis.size() > 1 && !cluster)) {
            throw new IllegalArgumentException("one --redis, or several with --cluster, and at least one client");
        }
        return new Settings(redis, cluster, watchdogMillis, clients);
    }

    private static String value(String[] args, int i) {
        if (i == args.length) {
            throw new IllegalArgumentException(args[i - 1] + " needs a value");
        }
        return args[i];
    }
}
