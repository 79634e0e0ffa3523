package dev.parley.load;

/** Requests due at one instant, sent one right after the other by one thread; a part is over when all have ended. */
final class BurstDriver implements Driver {
    private final Sender sender;
    private final Clock clock;
    private volatile long doneNs;
    private volatile Thread bursting = new Thread(() -> {});

    BurstDriver(Target target, Clock clock) {
        this.sender = new Sender(target, 1, clock);
        this.clock = clock;
    }

    @Override
    public void begin(Part part) {
        doneNs = 0;
        part.beganNs = clock.nowNs();
        bursting = Thread.ofPlatform().name("burst").daemon().start(() -> burst(part));
    }

    private void burst(Part part) {
        for (int i = 0; i < part.from; i++) {
            sender.arrive(part.outcomes, part.beganNs);
        }
        try {
            while (sender.underWay() > 0) {
                clock.restNs(clock.nowNs() + 20_000);
            }
            doneNs = clock.nowNs();
        } catch (InterruptedException cut) {
            // the part is over without its work being done
        }
    }

    @Override
    public boolean isDone() {
        return doneNs != 0;
    }

    @Override
    public long doneNs() {
        return doneNs;
    }

    @Override
    public int inFlight() {
        return sender.underWay();
    }

    @Override
    public void stop() {}

    @Override
    public boolean isIdle() {
        return sender.underWay() == 0;
    }

    @Override
    public void close() {
        sender.stop();
        bursting.interrupt();
    }
}
