package dev.rpcx;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Runs a client with the standard settings as a process. The line {@code call PORT COUNT} makes that many calls at
 * once, and is answered with how each of them has ended. The line {@code fill PORT COUNT} does the same, but uses up
 * all memory while the calls are under way.
 */
public final class SmallClient {
    private static final int MAX_ARRAYS = 1 << 16;
    private static final int ARRAY_BYTES = 1000;
    private static final long FILL_NANOS = TimeUnit.SECONDS.toNanos(3);

    /** Each call has five seconds, so all calls have ended after this time. */
    private static final long LONGEST_NANOS = TimeUnit.SECONDS.toNanos(20);

    private SmallClient() {}

    @RPCXClient(remoteServerName = "any")
    interface Calls {
        @Method(timeoutMillis = 5000)
        CompletableFuture<String> echo(String text);
    }

    public static void main(String[] args) throws IOException {
        Client client = Client.builder().connections(1).build();
        System.out.println("ready");
        JvmProcess.answer(line -> {
            String[] words = line.split(" ");
            Calls calls = client.create(Calls.class, "127.0.0.1", Integer.parseInt(words[1]));
            // the thread runs before the calls take the memory that there is, since a start needs some
            Filler filler = new Filler();
            Thread thread = new Thread(filler);
            thread.start();
            int wanted = Integer.parseInt(words[2]);
            List<CompletableFuture<String>> all = new ArrayList<>(wanted);
            while (all.size() < wanted) {
                try {
                    all.add(calls.echo("x"));
                } catch (OutOfMemoryError full) {
                    // the replies of the first calls already take all memory, and this program's own objects find none
                }
            }
            filler.begin(words[0].equals("fill"));
            end(thread);
            long until = System.nanoTime() + LONGEST_NANOS;
            return String.join(" ", all.stream().map(call -> end(call, until)).toArray(String[]::new));
        });
        client.close();
    }

    /** Takes all memory for some seconds, and whatever is given back meanwhile, when it is told to. */
    private static final class Filler implements Runnable {
        private final byte[][] all = new byte[MAX_ARRAYS][];
        private final CountDownLatch told = new CountDownLatch(1);
        private volatile boolean fills;

        /** Lets the thread fill the memory, or end without having done so. */
        void begin(boolean toFill) {
            fills = toFill;
            told.countDown();
        }

        @Override
        public void run() {
            try {
                told.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            if (fills) {
                fill();
            }
        }

        private void fill() {
            long begin = System.nanoTime();
            for (int i = 0; i < all.length && System.nanoTime() - begin < FILL_NANOS; ) {
                try {
                    all[i] = new byte[ARRAY_BYTES];
                    i++;
                } catch (OutOfMemoryError full) {
                    // some others may have given something back since
                }
            }
            java.util.Arrays.fill(all, null);
        }
    }

    private static void end(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String end(CompletableFuture<String> call, long untilNanos) {
        while (true) {
            try {
                call.get(Math.max(0, untilNanos - System.nanoTime()), TimeUnit.NANOSECONDS);
                return "OK";
            } catch (InterruptedException | TimeoutException e) {
                return "NEVER";
            } catch (ExecutionException e) {
                return e.getCause() instanceof RPCXException known
                        ? known.code().name()
                        : e.getCause().toString();
            } catch (OutOfMemoryError full) {
                // other calls still have the memory that waiting for this one takes; they give it back when they end
            }
        }
    }
}
