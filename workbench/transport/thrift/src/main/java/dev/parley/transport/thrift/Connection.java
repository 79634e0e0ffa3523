package dev.parley.transport.thrift;

import dev.parley.spi.Location;
import java.net.SocketException;
import java.time.Duration;
import org.apache.thrift.TConfiguration;
import org.apache.thrift.protocol.TProtocolFactory;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransportException;

/** One connection and the generated client on it. One call at a time; {@link #close} from any thread. */
final class Connection implements AutoCloseable {
    private final DeadlineSocket socket;
    private final Stubs.Calling client;

    private Connection(TProtocolFactory protocol, DeadlineSocket socket) {
        this.socket = socket;
        this.client = Stubs.client(protocol.getProtocol(socket));
    }

    /** Connects within what is left of the time. */
    static Connection open(TProtocolFactory protocol, Location to, long deadlineNs) throws TTransportException {
        DeadlineSocket socket = new DeadlineSocket(to);
        socket.deadlineNs = deadlineNs;
        socket.setConnectTimeout(socket.leftMs());
        socket.open();
        return new Connection(protocol, socket);
    }

    /** The client, for one call that ends by then. */
    Stubs.Calling until(long deadlineNs) {
        socket.deadlineNs = deadlineNs;
        return client;
    }

    @Override
    public void close() {
        socket.close();
    }

    /** A socket timeout counts from each read; this one makes them all end at the same time. */
    private static final class DeadlineSocket extends TSocket {
        private long deadlineNs;

        DeadlineSocket(Location to) throws TTransportException {
            super(TConfiguration.DEFAULT, to.host(), to.port());
        }

        int leftMs() throws TTransportException {
            long leftNs = deadlineNs - System.nanoTime();
            if (leftNs <= 0) {
                throw new TTransportException(TTransportException.TIMED_OUT, "no time left");
            }
            return (int) Math.min(Integer.MAX_VALUE, Duration.ofNanos(leftNs).toMillis() + 1);
        }

        @Override
        public int read(byte[] into, int offset, int length) throws TTransportException {
            try {
                getSocket().setSoTimeout(leftMs());
            } catch (SocketException e) {
                throw new TTransportException(TTransportException.NOT_OPEN, e);
            }
            return super.read(into, offset, length);
        }
    }
}
