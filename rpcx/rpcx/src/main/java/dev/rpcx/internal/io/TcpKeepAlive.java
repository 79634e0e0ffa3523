package dev.rpcx.internal.io;

import io.netty.channel.Channel;
import io.netty.channel.ChannelException;
import io.netty.channel.ChannelOption;
import io.netty.channel.epoll.EpollChannelOption;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.channel.socket.nio.NioChannelOption;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.util.concurrent.TimeUnit;
import jdk.net.ExtendedSocketOptions;

/**
 * Lets the kernel detect a peer whose host is gone, for the classic wire, which has no ping. A silent connection is
 * probed twice within the keepalive time. The connection also ends if bytes stay unacknowledged or unsent for
 * {@code unreadNanos}. A process that hangs on a working host is not detected by the probes.
 *
 * <p>The probes are timed in whole seconds, and every time is at least one second. Without epoll, {@code unreadNanos}
 * is not used, and the probes are set up only as far as the system allows.
 */
public final class TcpKeepAlive {
    private static final int PROBES = 2;

    private TcpKeepAlive() {}

    /**
     * Switches probing on for a connection.
     *
     * @param unreadNanos longest time for which bytes may stay unacknowledged, or unsent because the peer does not read
     */
    public static void on(Channel channel, long keepAliveNanos, long unreadNanos) {
        int seconds = (int) Math.max(1, TimeUnit.NANOSECONDS.toSeconds(keepAliveNanos / (PROBES + 1)));
        try {
            channel.config().setOption(ChannelOption.SO_KEEPALIVE, true);
            if (channel instanceof EpollSocketChannel) {
                channel.config().setOption(EpollChannelOption.TCP_KEEPIDLE, seconds);
                channel.config().setOption(EpollChannelOption.TCP_KEEPINTVL, seconds);
                channel.config().setOption(EpollChannelOption.TCP_KEEPCNT, PROBES);
                channel.config().setOption(EpollChannelOption.TCP_USER_TIMEOUT, (int)
                        Math.max(1000, TimeUnit.NANOSECONDS.toMillis(unreadNanos)));
            } else if (channel instanceof NioSocketChannel) {
                channel.config().setOption(NioChannelOption.of(ExtendedSocketOptions.TCP_KEEPIDLE), seconds);
                channel.config().setOption(NioChannelOption.of(ExtendedSocketOptions.TCP_KEEPINTERVAL), seconds);
                channel.config().setOption(NioChannelOption.of(ExtendedSocketOptions.TCP_KEEPCOUNT), PROBES);
            }
        } catch (ChannelException ended) {
            // the peer has already ended the connection, and the socket is closed
        }
    }
}
