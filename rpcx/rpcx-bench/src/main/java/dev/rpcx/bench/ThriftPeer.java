package dev.rpcx.bench;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.thrift.TException;
import org.apache.thrift.TProcessor;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TField;
import org.apache.thrift.protocol.TList;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TMessageType;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.protocol.TStruct;
import org.apache.thrift.protocol.TType;
import org.apache.thrift.server.TServer;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.layered.TFramedTransport;

/**
 * Peer that calls with Apache Thrift, set up as in its tutorial: framed binary protocol, TThreadPoolServer, and one
 * connection for each caller that has a call in flight. Structures are read and written by the same protocol calls that
 * the Thrift compiler generates.
 */
record ThriftPeer() implements Peer {
    private static final TStruct STRUCT = new TStruct("");
    private static final int MAX_FRAME_BYTES = 64 * 1024 * 1024;

    @Override
    public String name() {
        return "thrift";
    }

    @Override
    public boolean isAsynchronous() {
        return false;
    }

    @Override
    public AutoCloseable serve(int port) throws Exception {
        TServerSocket socket = new TServerSocket(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
        TServer server = new TThreadPoolServer(new TThreadPoolServer.Args(socket)
                .processor(new Echo())
                .maxWorkerThreads(2048)
                .transportFactory(new TFramedTransport.Factory(MAX_FRAME_BYTES))
                .protocolFactory(new TBinaryProtocol.Factory()));
        Thread.ofPlatform().daemon().name("thrift-accept").start(server::serve);
        return server::stop;
    }

    @Override
    public Caller connect(int port) {
        return new Pool(port);
    }

    private static final class Echo implements TProcessor {
        @Override
        public void process(TProtocol in, TProtocol out) throws TException {
            TMessage call = in.readMessageBegin();
            if (call.name.equals("hello")) {
                String text = readText(in);
                in.readMessageEnd();
                out.writeMessageBegin(new TMessage(call.name, TMessageType.REPLY, call.seqid));
                writeText(out, text, (short) 0);
            } else {
                List<Row> rows = readRows(in);
                in.readMessageEnd();
                out.writeMessageBegin(new TMessage(call.name, TMessageType.REPLY, call.seqid));
                writeRows(out, rows, (short) 0);
            }
            out.writeMessageEnd();
            out.getTransport().flush();
        }
    }

    /**
     * Caller that keeps the connections which no call uses at the moment. A Thrift client serves one caller at a time.
     */
    private static final class Pool implements Caller {
        private final int port;
        private final ConcurrentLinkedQueue<Connection> idle = new ConcurrentLinkedQueue<>();

        Pool(int port) {
            this.port = port;
        }

        private record Connection(TTransport transport, TProtocol protocol, int[] sequence) {}

        private Connection take() throws TException {
            Connection connection = idle.poll();
            if (connection != null) {
                return connection;
            }
            TTransport transport = new TFramedTransport(new TSocket("127.0.0.1", port), MAX_FRAME_BYTES);
            transport.open();
            return new Connection(transport, new TBinaryProtocol(transport), new int[1]);
        }

        @Override
        public String hello(String text) throws TException {
            Connection connection = take();
            TProtocol protocol = connection.protocol();
            protocol.writeMessageBegin(
                    new TMessage("hello", TMessageType.CALL, ++connection.sequence()[0]));
            writeText(protocol, text, (short) 1);
            protocol.writeMessageEnd();
            connection.transport().flush();
            protocol.readMessageBegin();
            String reply = readText(protocol);
            protocol.readMessageEnd();
            idle.add(connection);
            return reply;
        }

        @Override
        public List<Row> records(List<Row> rows) throws TException {
            Connection connection = take();
            TProtocol protocol = connection.protocol();
            protocol.writeMessageBegin(
                    new TMessage("records", TMessageType.CALL, ++connection.sequence()[0]));
            writeRows(protocol, rows, (short) 1);
            protocol.writeMessageEnd();
            connection.transport().flush();
            protocol.readMessageBegin();
            List<Row> reply = readRows(protocol);
            protocol.readMessageEnd();
            idle.add(connection);
            return reply;
        }

        @Override
        public void close() {
            idle.forEach(connection -> connection.transport().close());
        }
    }

    private static void writeText(TProtocol out, String text, short id) throws TException {
        out.writeStructBegin(STRUCT);
        out.writeFieldBegin(new TField("text", TType.STRING, id));
        out.writeString(text);
        out.writeFieldEnd();
        out.writeFieldStop();
        out.writeStructEnd();
    }

    private static String readText(TProtocol in) throws TException {
        String text = "";
        in.readStructBegin();
        for (TField field = in.readFieldBegin(); field.type != TType.STOP; field = in.readFieldBegin()) {
            text = in.readString();
            in.readFieldEnd();
        }
        in.readStructEnd();
        return text;
    }

    private static void writeRows(TProtocol out, List<Row> rows, short id) throws TException {
        out.writeStructBegin(STRUCT);
        out.writeFieldBegin(new TField("rows", TType.LIST, id));
        out.writeListBegin(new TList(TType.STRUCT, rows.size()));
        for (Row row : rows) {
            out.writeStructBegin(STRUCT);
            out.writeFieldBegin(new TField("text", TType.STRING, (short) 1));
            out.writeString(row.text());
            out.writeFieldBegin(new TField("flag", TType.BOOL, (short) 2));
            out.writeBool(row.flag());
            out.writeFieldBegin(new TField("octet", TType.I32, (short) 3));
            out.writeI32(row.octet());
            out.writeFieldBegin(new TField("epochSecond", TType.I64, (short) 4));
            out.writeI64(row.at().toEpochSecond(ZoneOffset.UTC));
            out.writeFieldBegin(new TField("nano", TType.I32, (short) 5));
            out.writeI32(row.at().getNano());
            out.writeFieldBegin(new TField("unscaled", TType.I64, (short) 6));
            out.writeI64(row.amount().unscaledValue().longValueExact());
            out.writeFieldBegin(new TField("scale", TType.I32, (short) 7));
            out.writeI32(row.amount().scale());
            out.writeFieldBegin(new TField("ratio", TType.DOUBLE, (short) 8));
            out.writeDouble(row.ratio());
            out.writeFieldBegin(new TField("count", TType.I32, (short) 9));
            out.writeI32(row.count());
            out.writeFieldBegin(new TField("small", TType.I16, (short) 10));
            out.writeI16(row.small());
            out.writeFieldBegin(new TField("big", TType.I64, (short) 11));
            out.writeI64(row.big());
            out.writeFieldStop();
            out.writeStructEnd();
        }
        out.writeListEnd();
        out.writeFieldEnd();
        out.writeFieldStop();
        out.writeStructEnd();
    }

    private static List<Row> readRows(TProtocol in) throws TException {
        List<Row> rows = new ArrayList<>();
        in.readStructBegin();
        for (TField field = in.readFieldBegin(); field.type != TType.STOP; field = in.readFieldBegin()) {
            TList list = in.readListBegin();
            for (int i = 0; i < list.size; i++) {
                rows.add(readRow(in));
            }
            in.readListEnd();
            in.readFieldEnd();
        }
        in.readStructEnd();
        return rows;
    }

    private static Row readRow(TProtocol in) throws TException {
        String text = "";
        boolean flag = false;
        int octet = 0;
        long second = 0;
        int nano = 0;
        long unscaled = 0;
        int scale = 0;
        double ratio = 0;
        int count = 0;
        short small = 0;
        long big = 0;
        in.readStructBegin();
        for (TField field = in.readFieldBegin(); field.type != TType.STOP; field = in.readFieldBegin()) {
            switch (field.id) {
                case 1 -> text = in.readString();
                case 2 -> flag = in.readBool();
                case 3 -> octet = in.readI32();
                case 4 -> second = in.readI64();
                case 5 -> nano = in.readI32();
                case 6 -> unscaled = in.readI64();
                case 7 -> scale = in.readI32();
                case 8 -> ratio = in.readDouble();
                case 9 -> count = in.readI32();
                case 10 -> small = in.readI16();
                case 11 -> big = in.readI64();
                default -> throw new TException("unknown field " + field.id);
            }
            in.readFieldEnd();
        }
        in.readStructEnd();
        return new Row(
                text,
                flag,
                octet,
                LocalDateTime.ofEpochSecond(second, nano, ZoneOffset.UTC),
                new BigDecimal(BigInteger.valueOf(unscaled), scale),
                (float) ratio,
                count,
                small,
                big);
    }
}
