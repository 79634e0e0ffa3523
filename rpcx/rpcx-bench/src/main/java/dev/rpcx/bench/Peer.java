package dev.rpcx.bench;

import java.util.List;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** One way to call. A server and a caller never share a process. */
interface Peer {
    String name();

    /** Starts to serve on a loopback port; what is returned ends it. */
    AutoCloseable serve(int port) throws Exception;

    Caller connect(int port) throws Exception;

    /** True where the peer can carry rows. */
    default boolean carriesRows() {
        return true;
    }

    /** True where many calls can be under way on one connection without a thread each. */
    default boolean isAsynchronous() {
        return true;
    }

    /** A connected client. Thread-safe. */
    interface Caller extends AutoCloseable {
        /** The same text, from the other side. */
        String hello(String text) throws Exception;

        /** As {@link #hello}, told later on any thread. */
        default void hello(String text, BiConsumer<@Nullable String, @Nullable Throwable> told) {
            throw new UnsupportedOperationException("this peer only blocks");
        }

        /** The same rows, from the other side. */
        default List<Row> records(List<Row> rows) throws Exception {
            throw new UnsupportedOperationException("this peer carries no rows");
        }

        @Override
        void close();
    }
}
