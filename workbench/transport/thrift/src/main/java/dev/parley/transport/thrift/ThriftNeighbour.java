package dev.parley.transport.thrift;

import dev.parley.spi.CallException;
import dev.parley.spi.CallException.Code;
import dev.parley.spi.Location;
import dev.parley.spi.Neighbour;
import dev.parley.spi.Operation;
import dev.parley.transport.thrift.generated.fault.Fault;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TException;
import org.apache.thrift.TSerializer;
import org.apache.thrift.protocol.TProtocolFactory;

/** Calls one service. A connection that is free is used again, the last one first; a call that finds none opens one. */
final class ThriftNeighbour implements Neighbour {
    private final TProtocolFactory protocol;
    private final Location to;
    private final ConcurrentLinkedDeque<Connection> idle = new ConcurrentLinkedDeque<>();
    /** All that are open, idle or not: what {@link #close} ends. */
    private final Set<Connection> open = ConcurrentHashMap.newKeySet();

    private volatile boolean closed;

    ThriftNeighbour(TProtocolFactory protocol, Location to) {
        this.protocol = protocol;
        this.to = to;
    }

    @Override
    public <Q extends Record, R extends Record> R call(Operation<Q, R> operation, Q request, Duration timeout) {
        long deadlineNs = System.nanoTime() + timeout.toNanos();
        Connection connection = null;
        boolean canGoOn = false;
        try {
            connection = connection(deadlineNs);
            R reply = operation.reply().cast(connection.until(deadlineNs).call(operation.name(), request));
            canGoOn = true;
            return reply;
        } catch (Fault | TApplicationException answered) {
            // the reply was read to its end, so the connection stays in step
            canGoOn = answered instanceof Fault;
            throw Errors.read(answered);
        } catch (TException e) {
            throw explained(e, timeout);
        } finally {
            if (connection != null) {
                giveBack(connection, canGoOn);
            }
        }
    }

    private CallException explained(TException thrown, Duration timeout) {
        CallException call = Errors.read(thrown);
        return switch (call.code()) {
            case UNAVAILABLE -> {
                // the server is gone for every connection: the next call opens a new one, and does not fail on one that
                // is dead
                dropIdle();
                yield new CallException(
                        Code.UNAVAILABLE,
                        closed ? "the client of " + to + " is closed" : to + " cannot be reached: " + call.getMessage(),
                        thrown);
            }
            case DEADLINE_EXCEEDED ->
                new CallException(call.code(), to + " did not answer within " + timeout.toMillis() + " ms", thrown);
            default -> call;
        };
    }

    private Connection connection(long deadlineNs) throws TException {
        if (closed) {
            throw new CallException(Code.UNAVAILABLE, "the client of " + to + " is closed");
        }
        Connection free = idle.pollFirst();
        if (free != null) {
            return free;
        }
        Connection opened = Connection.open(protocol, to, deadlineNs);
        open.add(opened);
        if (closed) {
            end(opened);
        }
        return opened;
    }

    private void giveBack(Connection connection, boolean canGoOn) {
        if (canGoOn && !closed) {
            idle.addFirst(connection);
        } else {
            end(connection);
        }
    }

    private void dropIdle() {
        for (Connection next = idle.pollFirst(); next != null; next = idle.pollFirst()) {
            end(next);
        }
    }

    private void end(Connection connection) {
        open.remove(connection);
        connection.close();
    }

    int connections() {
        return open.size();
    }

    @Override
    public long payloadBytes(Record message) {
        try {
            return new TSerializer(protocol).serialize(Stubs.toStruct(message)).length;
        } catch (TException e) {
            throw Errors.read(e);
        }
    }

    @Override
    public void close() {
        closed = true;
        open.forEach(this::end);
        idle.clear();
    }
}
