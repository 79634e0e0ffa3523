package dev.rpcx;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;

/**
 * Makes calls at a fixed rate, as honest callers do. Goodput is the part of calls that are answered correctly within
 * {@link #IN_TIME_MILLIS} after they were due. So calls that a caller could make only too late count as failed.
 */
final class Callers {
    static final int PER_SECOND = 400;
    static final int IN_TIME_MILLIS = 200;

    private static final int REST_SECONDS = 30;

    private final Map<String, Integer> misses = new ConcurrentHashMap<>();

    private final Function<Integer, String> texts;
    private final Function<Integer, Function<String, CompletableFuture<String>>> calls;

    /**
     * @param texts returns the argument of the call of this number, which is also its right answer
     * @param calls makes the call of this number
     */
    Callers(Function<Integer, String> texts, Function<Integer, Function<String, CompletableFuture<String>>> calls) {
        this.texts = texts;
        this.calls = calls;
    }

    /** Returns why calls of the last {@link #goodput} were not good, and how many: a text of a failure, or "late". */
    String misses() {
        return misses.toString();
    }

    private void missed(String how) {
        misses.merge(how, 1, Integer::sum);
    }

    /** Makes calls for this time, waits for the end of each call, and returns the goodput. */
    double goodput(long millis) throws Exception {
        misses.clear();
        int count = Math.toIntExact(PER_SECOND * millis / 1000);
        AtomicInteger good = new AtomicInteger();
        long begin = System.nanoTime();
        List<CompletableFuture<?>> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            long due = begin + i * (TimeUnit.SECONDS.toNanos(1) / PER_SECOND);
            for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
            String text = texts.apply(i);
            try {
                all.add(calls.apply(i).apply(text).handle((reply, thrown) -> {
                    if (text.equals(reply)
                            && System.nanoTime() - due <= TimeUnit.MILLISECONDS.toNanos(IN_TIME_MILLIS)) {
                        good.incrementAndGet();
                    } else {
                        missed(thrown == null ? "late" : String.valueOf(thrown.getMessage()));
                    }
                    return null;
                }));
            } catch (RPCXException noSlot) {
                missed(String.valueOf(noSlot.getMessage()));
            }
        }
        CompletableFuture.allOf(all.toArray(new CompletableFuture<?>[0])).get(REST_SECONDS, TimeUnit.SECONDS);
        return (double) good.get() / count;
    }
}
