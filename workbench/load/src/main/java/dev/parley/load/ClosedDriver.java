package dev.parley.load;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * Clients, a thread each, each waiting for its reply before it sends again. Their number follows the stretches: held,
 * or brought from one number to another in even steps over a stretch's length. A request belongs to the stretch in
 * which it was sent.
 */
final class ClosedDriver implements Driver {
    private static final long NEVER = Long.MAX_VALUE;

    private final Caller caller;
    private final Occupancy occupancy;
    private final Clock clock;
    private final int iterations;
    private final List<Client> clients = new ArrayList<>();
    private volatile Outcomes outcomes;
    private volatile boolean isStopped;

    /** @param iterations of the scenario, after which a client is a new user */
    ClosedDriver(Caller caller, int iterations, Occupancy occupancy, Clock clock, Outcomes first) {
        this.caller = caller;
        this.occupancy = occupancy;
        this.iterations = iterations;
        this.clock = clock;
        this.outcomes = first;
    }

    private final class Client {
        private final int index;
        private final long fromNs;
        private volatile long untilNs = NEVER;
        private final Thread thread;

        Client(int index, long fromNs) {
            this.index = index;
            this.fromNs = fromNs;
            this.thread =
                    Thread.ofPlatform().name("client-" + (index + 1)).daemon().unstarted(this::live);
        }

        private boolean isThere() {
            return !isStopped && (untilNs == NEVER || untilNs - clock.nowNs() > 0);
        }

        private void live() {
            Supplier<Outcomes> current = () -> outcomes;
            BooleanSupplier goesOn = this::isThere;
            long cameNs = 0;
            try {
                clock.awaitNs(fromNs);
                cameNs = clock.nowNs();
                while (isThere()) {
                    caller.visit(index, iterations, current, goesOn);
                }
            } catch (InterruptedException told) {
                // close() no longer waits for this client
            } catch (RuntimeException | Error unexpected) {
                // a client that ended in silence would lower the load without a word
                outcomes.due(1);
                outcomes.failed(unexpected, clock.nowNs(), clock.nowNs());
            } finally {
                if (cameNs != 0) {
                    occupancy.there(cameNs, clock.nowNs());
                }
            }
        }
    }

    @Override
    public void begin(Stretch stretch) {
        long nowNs = clock.nowNs();
        stretch.beganNs = nowNs;
        outcomes = stretch.outcomes;
        int from = (int) stretch.from;
        int to = (int) stretch.to;
        for (int i = clients.size(); i < Math.max(from, to); i++) {
            long waitNs = i < from ? 0 : (long) ((double) stretch.lengthNs * (i + 1 - from) / (to - from));
            Client client = new Client(i, nowNs + waitNs);
            clients.add(client);
            client.thread.start();
        }
        for (Client client : clients.subList(Math.min(to, clients.size()), clients.size())) {
            client.untilNs =
                    nowNs + (from > to ? (long) ((double) stretch.lengthNs * (from - client.index) / (from - to)) : 0);
        }
    }

    @Override
    public boolean isDone() {
        return false;
    }

    @Override
    public long doneNs() {
        return 0;
    }

    @Override
    public int inFlight() {
        return caller.inFlight();
    }

    @Override
    public void stop() {
        isStopped = true;
    }

    @Override
    public boolean isIdle() {
        return clients.stream().noneMatch(c -> c.thread.isAlive() && c.fromNs - clock.nowNs() <= 0);
    }

    @Override
    public void close() {
        stop();
        clients.forEach(c -> c.thread.interrupt());
    }
}
