package dev.parley.work.messages;

import dev.parley.spi.Operation;
import dev.parley.spi.Work;
import java.util.List;
import java.util.function.Function;

/**
 * An exchange in which what was sent comes back once from every leaf, in the topology's order.
 *
 * @param leaves the names expected, in order; a leaf that two gateways share stands twice
 */
record GatherExchange<Q extends Record, R extends Record, P>(
        Operation<Q, R> operation,
        List<Q> requests,
        List<String> leaves,
        Function<R, List<P>> parts,
        Function<P, String> service,
        Function<P, Q> answer)
        implements Work.Exchange<Q, R> {

    @Override
    public Q request(long index) {
        return requests.get((int) Math.floorMod(index, (long) requests.size()));
    }

    @Override
    public boolean isRight(Q request, R reply) {
        List<P> given = parts.apply(reply);
        if (given.size() != leaves.size()) {
            return false;
        }
        for (int i = 0; i < leaves.size(); i++) {
            P part = given.get(i);
            if (!leaves.get(i).equals(service.apply(part)) || !request.equals(answer.apply(part))) {
                return false;
            }
        }
        return true;
    }
}
