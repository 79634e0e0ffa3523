package dev.rpcx.cli;

import dev.rpcx.Client;
import dev.rpcx.Endpoint;
import dev.rpcx.RPCXClient;
import dev.rpcx.RPCXException;
import java.io.IOException;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * What the commands {@code list}, {@code health} and {@code call} do at one server.
 *
 * @param remote how the server is talked to
 * @param at where it listens
 */
record Calls(Remote remote, Endpoint at, PrintStream out, PrintStream err) {
    private static final Duration CALL_TIMEOUT = Duration.ofSeconds(5);

    /**
     * Thrown for what is not a mistake in what was asked, such as a fault of the server or of the network. The text is
     * in words of this tool.
     */
    static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1L;

        final int exitCode;

        Failure(int exitCode, String text, @Nullable Throwable cause) {
            super(text, cause);
            this.exitCode = exitCode;
        }
    }

    static String words(RPCXException e) {
        return e.code() + ", " + e.executed() + ": " + e.getMessage();
    }

    int list() {
        return with(false, client -> {
            List<String> published = client.published(at.host(), at.port());
            show("the list has come, but it", () -> published.forEach(name -> out.println(Printable.line(name))));
        });
    }

    int health() {
        return with(false, client -> {
            long begin = System.nanoTime();
            int methods = client.published(at.host(), at.port()).size();
            long ms = (System.nanoTime() - begin) / 1_000_000;
            out.printf("up: connected and answered in %d ms, %d methods%n", ms, methods);
        });
    }

    int call(Called called) {
        return with(true, client -> {
            if (called.isOneWay()) {
                deliver(client, called);
                return;
            }
            Object result = invoke(client, called);
            if (!JsonResult.isVoid(called.result())) {
                show("the call was executed, but its result", () -> JsonResult.print(called.result(), result, out));
            }
        });
    }

    private int with(boolean isCall, Consumer<Client> task) {
        try (Client client = remote.client(CALL_TIMEOUT, err)) {
            task.accept(client);
            return 0;
        } catch (RPCXException e) {
            throw explained(e, isCall);
        }
    }

    /** Makes the call. Whatever fails once a call may have been sent is not a mistake in what was asked. */
    private @Nullable Object invoke(Client client, Called called) {
        Object proxy = client.create(called.type(), at.host(), at.port());
        try {
            return called.invoke(proxy);
        } catch (RPCXException | Mistake e) {
            throw e;
        } catch (RuntimeException | Error e) {
            throw new Failure(Rpcx.FAILED, "MAYBE: the call has failed on this side: " + e, e);
        }
    }

    /**
     * Prints what a server has sent. This may need more memory than there is, and the classes of the result may fail
     * when they are read.
     *
     * @param what beginning of the error's text, which says what has come
     */
    private static void show(String what, Runnable printing) {
        try {
            printing.run();
        } catch (RuntimeException | Error e) {
            String why = e instanceof StackOverflowError
                    ? "it is too deep"
                    : e instanceof OutOfMemoryError
                            ? "no memory is left for it"
                            : e instanceof IllegalStateException ? String.valueOf(e.getMessage()) : e.toString();
            throw new Failure(Rpcx.FAILED, what + " cannot be shown: " + why, e);
        }
    }

    /** Service that no server publishes: its call is the one that {@code deliver} sends after a one-way call. */
    @RPCXClient(remoteServerName = "rpcx-cli")
    interface Probe {
        void oneWayCalls();
    }

    /**
     * Makes a one-way call, and checks that the server has read it. The call may return before it has been sent, and
     * its caller does not learn of its acknowledgement. The tool therefore sends another call after it on the same
     * connection: if the server answers that one, it has read the one-way call.
     */
    private void deliver(Client client, Called called) {
        List<String> published = client.published(at.host(), at.port());
        if (!published.contains(called.published())) {
            throw RPCXException.refused(
                    RPCXException.Code.NOT_FOUND,
                    "the server does not publish " + called.published()
                            + Printable.nearest(called.published(), published));
        }
        invoke(client, called);
        RPCXException why = answered(client.create(Probe.class, at.host(), at.port()));
        try {
            // Each connection has one list object, so another object comes from another connection.
            if (why == null && client.published(at.host(), at.port()) == published) {
                return;
            }
        } catch (RPCXException e) {
            // It is the request for the list that has failed, and not the one-way call, which may have been executed.
            why = e;
        }
        throw new Failure(
                Rpcx.FAILED,
                "MAYBE: the one-way call was sent, but the server has not shown that it has read it: "
                        + (why == null ? "the connection has ended" : words(why)),
                why);
    }

    /** Returns why there is no answer; null if there is one. */
    private static @Nullable RPCXException answered(Probe probe) {
        long end = System.nanoTime() + CALL_TIMEOUT.toNanos();
        while (true) {
            try {
                probe.oneWayCalls();
                return null;
            } catch (RPCXException e) {
                if (e.code() == RPCXException.Code.NOT_FOUND) {
                    return null;
                }
                // A server that admits one call at a time admits the next one when it has acknowledged the one-way
                // call.
                if (e.code() != RPCXException.Code.OVERLOADED || System.nanoTime() - end > 0) {
                    return e;
                }
                LockSupport.parkNanos(1_000_000);
            }
        }
    }

    /**
     * Returns the error, with the most likely cause if one side speaks TLS and the other does not. A call that may have
     * been executed has another exit code than one that has not reached its server, since a script may repeat the
     * latter.
     */
    private RuntimeException explained(RPCXException e, boolean isCall) {
        if (e.code() != RPCXException.Code.UNAVAILABLE) {
            return e;
        }
        int exitCode = isCall && e.executed() != RPCXException.Executed.NOT_EXECUTED ? Rpcx.FAILED : Rpcx.UNWELL;
        for (Throwable why = e; remote.isTls() && why != null; why = why.getCause()) {
            if (String.valueOf(why.getMessage()).contains("not an SSL/TLS record")) {
                return new Failure(exitCode, e.code() + ", " + e.executed() + ": the server does not speak TLS", e);
            }
        }
        boolean isHeard = !remote.isTls() && e.executed() == RPCXException.Executed.NOT_EXECUTED && isConnectable();
        return new Failure(exitCode, words(e) + (isHeard ? " (does it speak TLS?)" : ""), e);
    }

    /**
     * Whether a connection can be made. If so, the network and the port work, and the fault is that the server's answer
     * is not understood.
     */
    private boolean isConnectable() {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(at.host(), at.port()), (int) CALL_TIMEOUT.toMillis());
            return true;
        } catch (IOException | RuntimeException e) {
            return false;
        }
    }
}
