package dev.rpcx;

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
 * Has the kernel find a peer whose host is gone, for a wire that cannot ask: a silent connection is probed twice in the
 * keepalive time, and bytes that nobody acknowledges or has room for end it in a time of their own. A process that
 * stands still on a host that is
 * well is not found this way. Times are in whole seconds, one at least. On Linux; elsewhere probing is asked for, with
 * the times that the system gives it.
 */
final class TcpKeepAlive {
    private static final int PROBES = 2;

    private TcpKeepAlive() {}

    /** @param unreadNanos longest time for bytes that have been sent; a peer that does not read may take it too */
    static void on(Channel channel, long keepAliveNanos, long unreadNanos) {
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
            // the peer was faster: the socket is closed, and there is nothing to probe
        }
    }
}
