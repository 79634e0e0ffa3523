package dev.rpcx;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;

/**
 * A service with a method of every kind. A method that takes time takes it on the clock of the simulation. All worlds
 * share one instance of the service, since it has no state.
 */
@RPCXServer("sim")
final class SimService {
    /** Holds a number that cannot be read if it is odd. */
    record Even(int number) {
        Even {
            if (number % 2 != 0) {
                throw new IllegalArgumentException(number + " (expected: an even number)");
            }
        }
    }

    /** A client sends this for {@link Even}. */
    record Number(int number) {}

    /** This is the service as its clients see it. */
    @RPCXClient(remoteServerName = "sim")
    interface Remote {
        /**
         * A call of a method that takes a stream has a year by default. With this time it ends within a world's time.
         */
        int TAKES_MILLIS = 2000;

        RPCXFuture<String> echo(String id, String text);

        @Method(value = "echo", idempotent = true)
        RPCXFuture<String> echoAgain(String id, String text);

        RPCXFuture<String> inline(String id, String text);

        RPCXFuture<String> pooled(String id, String text);

        RPCXFuture<String> later(String id, long micros);

        @Method(value = "later", idempotent = true)
        RPCXFuture<String> laterAgain(String id, long micros);

        @Method(value = "later", idempotent = true, hedgeMillis = 4)
        RPCXFuture<String> laterHedged(String id, long micros);

        RPCXFuture<String> large(String id, int bytes);

        RPCXFuture<String> hang(String id);

        RPCXFuture<String> fail(String id);

        RPCXFuture<String> error(String id);

        RPCXFuture<String> picky(String id, Number number);

        RPCXFuture<String> missing(String id);

        RPCXFuture<String> hop(String id, long micros);

        @OneWay
        void note(String id, String text);

        Flow.Publisher<String> brings(String id, int items, int bytes, int end);

        @Method(timeoutMillis = TAKES_MILLIS)
        RPCXFuture<String> takes(Flow.Publisher<String> items);

        Flow.Publisher<String> both(Flow.Publisher<String> items);
    }

    static final SimService SERVICE = new SimService();

    private static SimScenario scenario() {
        return SimScenario.current();
    }

    private static String answer(String id) {
        scenario().calls.handling(id).end();
        return id;
    }

    @Method
    String echo(String id, String text) {
        return answer(id) + ":" + text;
    }

    @Method
    @RunOn(RunOn.Place.EVENT_LOOP)
    String inline(String id, String text) {
        return answer(id) + ":" + text;
    }

    @Method
    @RunOn(RunOn.Place.POOL)
    String pooled(String id, String text) {
        return answer(id) + ":" + text;
    }

    @Method
    CompletionStage<String> later(String id, long micros) {
        SimCalls.Handler handler = scenario().calls.handling(id);
        CompletableFuture<String> result = new CompletableFuture<>();
        scenario().later(TimeUnit.MICROSECONDS.toNanos(Math.min(Math.abs(micros), 300_000)), () -> {
            handler.end();
            result.complete(id);
        });
        return result;
    }

    @Method
    String large(String id, int bytes) {
        return answer(id) + ":" + "y".repeat(Math.floorMod(bytes, 500_000));
    }

    /** Returns a future that ends when the caller does not wait any more. */
    @Method
    CompletionStage<String> hang(String id) {
        SimCalls.Handler handler = scenario().calls.handling(id);
        CompletableFuture<String> result = new CompletableFuture<>();
        look(CallContext.current().orElseThrow(), handler, result);
        return result;
    }

    private static void look(CallContext context, SimCalls.Handler handler, CompletableFuture<String> result) {
        if (context.isCancelled()) {
            handler.end();
            result.complete("cancelled");
        } else {
            scenario().later(TimeUnit.MILLISECONDS.toNanos(5), () -> look(context, handler, result));
        }
    }

    @Method
    String fail(String id) {
        throw new IllegalArgumentException(answer(id));
    }

    @Method
    String error(String id) {
        throw new AssertionError(answer(id));
    }

    @Method
    String picky(String id, Even number) {
        return answer(id) + ":" + number.number();
    }

    /** Calls another service within what is left of its own time. */
    @Method
    CompletionStage<String> hop(String id, long micros) {
        SimCalls.Handler handler = scenario().calls.handling(id);
        return scenario().hop(micros).handle((value, thrown) -> {
            handler.end();
            return id;
        });
    }

    @Method
    void note(String id, String text) {
        answer(id);
    }

    @Method
    Flow.Publisher<String> brings(String id, int items, int bytes, int end) {
        answer(id);
        SimStreams.Source.End[] ends = SimStreams.Source.End.values();
        return new SimStreams.Source(
                scenario(),
                id,
                Math.floorMod(items, 1_000),
                Math.floorMod(bytes, 60_000),
                ends[Math.floorMod(end, ends.length)]);
    }

    @Method
    CompletionStage<String> takes(Flow.Publisher<String> items) {
        String id = id();
        SimCalls.Handler handler = scenario().calls.handling(id);
        SimStreams.Sink sink = new SimStreams.Sink(scenario(), id, !id.equals("stranger"));
        items.subscribe(sink);
        return sink.end().handle((received, thrown) -> {
            handler.end();
            if (thrown != null) {
                throw new IllegalStateException("the stream failed");
            }
            return id + ":" + received;
        });
    }

    /** Gives back what it gets. */
    @Method
    Flow.Publisher<String> both(Flow.Publisher<String> items) {
        answer(id());
        return items;
    }

    private static String id() {
        String id = CallContext.current().orElseThrow().metadata().get("id");
        return id == null ? "stranger" : id;
    }
}
