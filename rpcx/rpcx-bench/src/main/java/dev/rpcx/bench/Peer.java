package dev.rpcx.bench;

import java.util.List;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** Way of calling that can be measured. Its server and its callers never share a process. */
interface Peer {
    String name();

    /** Starts a server on a loopback port. Closing the returned object ends the server. */
    AutoCloseable serve(int port) throws Exception;

    Caller connect(int port) throws Exception;

    /** Returns whether the peer can carry rows. */
    default boolean carriesRows() {
        return true;
    }

    /** Returns whether many calls can be in flight on one connection without a thread for each. */
    default boolean isAsynchronous() {
        return true;
    }

    /** Connected client. Thread-safe. */
    interface Caller extends AutoCloseable {
        /** Sends a text, and returns the text that comes back from the other side, which is the same. */
        String hello(String text) throws Exception;

        /** Does the same as {@link #hello}, and tells the callback the reply or the failure later, on any thread. */
        default void hello(String text, BiConsumer<@Nullable String, @Nullable Throwable> callback) {
            throw new UnsupportedOperationException("this peer only blocks");
        }

        /** Sends rows, and returns the rows that come back from the other side, which are the same. */
        default List<Row> records(List<Row> rows) throws Exception {
            throw new UnsupportedOperationException("this peer carries no rows");
        }

        @Override
        void close();
    }
}
