package dev.rpcx.examples.async;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.rpcx.Client;
import dev.rpcx.RegistryServer;
import dev.rpcx.Server;
import dev.rpcx.examples.RawCaller;
import dev.rpcx.examples.Wiretap;
import dev.rpcx.exported.async.Quote;
import dev.rpcx.exported.async.QuoteRequest;
import dev.rpcx.types.Decimal;
import java.math.BigDecimal;
import org.junit.jupiter.api.Test;

class AsyncProtoTest {
    @Test
    void bytesAreThoseOfTheTypesThatProtocGenerates() throws Exception {
        byte[] request = QuoteRequest.newBuilder().setProduct("bread").build().toByteArray();
        BigDecimal price = new BigDecimal("5.00");
        byte[] reply = Quote.newBuilder()
                .setProduct("bread")
                .setPrice(Decimal.newBuilder()
                        .setUnscaled(ByteString.copyFrom(price.unscaledValue().toByteArray()))
                        .setScale(price.scale()))
                .build()
                .toByteArray();
        try (Server server = new Server(0, RegistryServer.registry(new ManyAtOnce.Prices())).start();
                Wiretap tap = new Wiretap(server.port());
                Client client = Client.standard();
                RawCaller raw = new RawCaller(server.port())) {
            assertThat(client.create(ManyAtOnce.PricesClient.class, "127.0.0.1", tap.port())
                            .quote("bread")
                            .join()
                            .price())
                    .isEqualTo(price);
            assertThat(tap.sent()).containsExactly(request);
            assertThat(tap.received()).containsExactly(reply);
            assertThat(raw.call("prices", "quote", QuoteRequest.parseFrom(request)))
                    .isEqualTo(reply);
        }
    }
}
