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
 * Lets the kernel detect a peer whose machine is gone, on the classic wire, a protocol without pings. The kernel probes
 * a silent connection twice within the keepalive time. A process that hangs on a working machine is not detected.
 *
 * <p>The probes are timed in whole seconds, and are at least 1 s apart. Without epoll, the times of the probes are set
 * only as far as the system allows.
 */
public final class TcpKeepAlive {
    private static final int PROBES = 2;

    private TcpKeepAlive() {}

    /**
     * Makes the kernel probe a connection when the connection is silent. If the peer answers no probe, the connection
     * ends after a silence of {@code unreadNanos} with epoll (tcp(7), TCP_USER_TIMEOUT), and of {@code keepAliveNanos}
     * without epoll.
     *
     * @param keepAliveNanos time in nanoseconds, from the beginning of the silence, within which the kernel probes the
     *     peer twice
     * @param unreadNanos time in nanoseconds until the connection ends if bytes stay unacknowledged, or unsent because
     *     the peer does not read. Used only with epoll. Less than 1 s counts as 1 s
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
