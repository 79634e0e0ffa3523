package dev.rpcx;

import dev.rpcx.internal.discovery.DnsQuestion;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.dns.DefaultDnsRawRecord;
import io.netty.handler.codec.dns.DefaultDnsRecordDecoder;
import io.netty.handler.codec.dns.DnsRecord;
import io.netty.handler.codec.dns.DnsRecordType;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;

/**
 * Fuzzes the reading of DNS records, in which a name server can send anything. The class is public, since Jazzer
 * requires it.
 */
public final class DnsFuzz {
    private DnsFuzz() {}

    /** Jazzer calls this method with each input. */
    public static void fuzzerTestOneInput(byte[] bytes) {
        FuzzInput in = new FuzzInput(bytes);
        List<DnsRecord> records = new ArrayList<>();
        try {
            while (in.hasMore()) {
                int kind = in.next();
                byte[] content = in.take(in.next());
                if (kind % 2 == 0) {
                    records.add(new DefaultDnsRawRecord(
                            "_s._tcp.x.", DnsRecordType.SRV, 1, Unpooled.wrappedBuffer(content)));
                } else {
                    DnsRecord decoded = DefaultDnsRecordDecoder.DEFAULT.decodeRecord(Unpooled.wrappedBuffer(content));
                    if (decoded != null) {
                        records.add(decoded);
                    }
                }
            }
        } catch (Exception whatNettyRefuses) {
            return;
        }
        try {
            List<Endpoint> found = DnsQuestion.Services.lowest(records);
            if (found.size() > records.size()) {
                throw new AssertionError("more instances than records");
            }
        } catch (UnknownHostException refused) {
            // a client that looks up instances gets this exception too
        }
    }
}
