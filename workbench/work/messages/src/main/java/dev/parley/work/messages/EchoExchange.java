package dev.parley.work.messages;

import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import java.util.List;

/** An exchange in which what comes back is what was sent. */
record EchoExchange<Q extends Record>(Operation<Q, Q> operation, List<Q> requests) implements Work.Exchange<Q, Q> {
    @Override
    public Q request(long index) {
        return requests.get((int) Math.floorMod(index, (long) requests.size()));
    }

    @Override
    public boolean isRight(Q request, Q reply) {
        return request.equals(reply);
    }
}
