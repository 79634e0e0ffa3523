package dev.rpcx.bench;

import dev.rpcx.bench.proto.Rows;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;

/** Converts rows to generated Protobuf messages and back, as a service with records of its own does around gRPC. */
public final class ProtobufRows {
    private ProtobufRows() {}

    public static Rows toMessage(List<Row> rows) {
        Rows.Builder message = Rows.newBuilder();
        dev.rpcx.bench.proto.Row.Builder row = dev.rpcx.bench.proto.Row.newBuilder();
        for (Row r : rows) {
            message.addRows(row.clear()
                    .setText(r.text())
                    .setFlag(r.flag())
                    .setOctet(r.octet())
                    .setEpochSecond(r.at().toEpochSecond(ZoneOffset.UTC))
                    .setNano(r.at().getNano())
                    .setUnscaled(r.amount().unscaledValue().longValueExact())
                    .setScale(r.amount().scale())
                    .setRatio(r.ratio())
                    .setCount(r.count())
                    .setSmall(r.small())
                    .setBig(r.big())
                    .build());
        }
        return message.build();
    }

    public static List<Row> fromMessage(Rows message) {
        List<Row> rows = new ArrayList<>(message.getRowsCount());
        for (dev.rpcx.bench.proto.Row r : message.getRowsList()) {
            rows.add(new Row(
                    r.getText(),
                    r.getFlag(),
                    r.getOctet(),
                    LocalDateTime.ofEpochSecond(r.getEpochSecond(), r.getNano(), ZoneOffset.UTC),
                    new BigDecimal(BigInteger.valueOf(r.getUnscaled()), r.getScale()),
                    r.getRatio(),
                    r.getCount(),
                    (short) r.getSmall(),
                    r.getBig()));
        }
        return rows;
    }
}
