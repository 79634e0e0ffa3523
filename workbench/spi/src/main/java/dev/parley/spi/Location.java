package dev.parley.spi;

import java.util.Objects;

/** Where a service is reached. Written {@code host:port}, or {@code host:port/service} for a name at a broker. */
public sealed interface Location {
    String host();

    int port();

    /** A socket of the service's own. */
    record Socket(String host, int port) implements Location {
        public Socket {
            check(host, port);
        }

        @Override
        public String toString() {
            return host + ":" + port;
        }
    }

    /** A queue, topic or subject named after the service, at a broker that both sides connect to. */
    record AtBroker(String host, int port, String service) implements Location {
        public AtBroker {
            check(host, port);
            Objects.requireNonNull(service);
        }

        @Override
        public String toString() {
            return host + ":" + port + "/" + service;
        }
    }

    static Location parse(String text) {
        int slash = text.indexOf('/');
        String socket = slash < 0 ? text : text.substring(0, slash);
        int colon = socket.lastIndexOf(':');
        try {
            String host = socket.substring(0, Math.max(colon, 0));
            int port = Integer.parseInt(socket.substring(colon + 1));
            return slash < 0 ? new Socket(host, port) : new AtBroker(host, port, text.substring(slash + 1));
        } catch (NumberFormatException e) {
            throw new dev.parley.model.BadInput("location", text, "host:port or host:port/service");
        }
    }

    private static void check(String host, int port) {
        if (host.isEmpty() || port < 1 || port > 65_535) {
            throw new dev.parley.model.BadInput("location", host + ":" + port, "a host and a port from 1 to 65535");
        }
    }
}
