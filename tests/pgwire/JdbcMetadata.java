// Prints what DatabaseMetaData says about a database, one line for each row: the method, then its columns.
//     java -cp postgresql.jar JdbcMetadata.java URL USER PASSWORD
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.StringJoiner;

public class JdbcMetadata {
  public static void main(String[] arguments) throws Exception {
    try (Connection connection = DriverManager.getConnection(arguments[0], arguments[1], arguments[2])) {
      DatabaseMetaData data = connection.getMetaData();
      print("schemas", data.getSchemas(), "TABLE_SCHEM");
      print("tables", data.getTables(null, "public", "%", null), "TABLE_NAME", "TABLE_TYPE");
      print("columns", data.getColumns(null, "public", "%", "%"),
          "TABLE_NAME", "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "NULLABLE",
          "ORDINAL_POSITION", "COLUMN_DEF", "IS_AUTOINCREMENT");
      print("keys", data.getPrimaryKeys(null, "public", "people"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME");
      print("indexes", data.getIndexInfo(null, "public", "people", false, true),
          "INDEX_NAME", "NON_UNIQUE", "TYPE", "ORDINAL_POSITION", "COLUMN_NAME", "ASC_OR_DESC");
      print("imported", data.getImportedKeys(null, "public", "people"), "FK_NAME");
      print("exported", data.getExportedKeys(null, "public", "people"), "FK_NAME");
      print("types", data.getTypeInfo(), "TYPE_NAME", "DATA_TYPE");
      print("catalogs", data.getCatalogs(), "TABLE_CAT");
      connection.setReadOnly(true);
      connection.setAutoCommit(false);
      try (PreparedStatement query = connection.prepareStatement("SELECT name FROM people WHERE id = ?")) {
        query.setInt(1, 2);
        print("read", query.executeQuery(), "name");
      }
      try (Statement statement = connection.createStatement()) {
        statement.executeUpdate("DELETE FROM people");
        System.out.println("refused\tnothing");
      } catch (java.sql.SQLException error) {
        System.out.println("refused\t" + error.getSQLState());
      }
      connection.rollback();
    }
  }

  static void print(String method, ResultSet rows, String... columns) throws Exception {
    while (rows.next()) {
      StringJoiner line = new StringJoiner("\t");
      line.add(method);
      for (String column : columns) line.add(String.valueOf(rows.getString(column)));
      System.out.println(line);
    }
    rows.close();
  }
}
