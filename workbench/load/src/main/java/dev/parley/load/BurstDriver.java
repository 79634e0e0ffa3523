package dev.parley.load;

/** Requests due at one instant, sent one right after the other by one thread; a stretch is over when all have ended. */
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
    public void begin(Stretch stretch) {
        doneNs = 0;
        stretch.beganNs = clock.nowNs();
        bursting = Thread.ofPlatform().name("burst").daemon().start(() -> burst(stretch));
    }

    private void burst(Stretch stretch) {
        for (int i = 0; i < stretch.from; i++) {
            sender.arrive(stretch.outcomes, stretch.beganNs);
        }
        try {
            while (sender.underWay() > 0) {
                clock.restNs(clock.nowNs() + 20_000);
            }
            doneNs = clock.nowNs();
        } catch (InterruptedException cut) {
            // the stretch is over without its work being done
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
